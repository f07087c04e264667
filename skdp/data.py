"""Rows in partitions, which are fitted where they are: chunks of arrays, files, other tools."""

from skdp._oracle.sources.partitioned import Chunks, ParquetColumns, Partitions

__all__ = ["Chunks", "ParquetColumns", "Partitions"]
