"""Where rows live. Nothing outside the oracle imports this package's classes to read them."""

from skdp.oracle.rows.held import canonical
from skdp.oracle.rows.memory import MemoryRows as Rows
from skdp.oracle.rows.stream import StreamRows

__all__ = ["Rows", "StreamRows", "canonical"]
