"""Where rows live. Nothing outside the oracle imports this package's classes to read them."""

from skdp.oracle.rows.memory import MemoryRows as Rows

__all__ = ["Rows"]
