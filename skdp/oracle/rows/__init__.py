"""Where rows live. Nothing outside the oracle imports this package's classes to read them."""

from skdp.oracle.rows.memory import MemoryRows as Rows
from skdp.oracle.rows.memory import canonical

__all__ = ["Rows", "canonical"]
