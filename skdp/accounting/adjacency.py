"""Who counts as a neighbour: the two relations under which a guarantee can be stated."""

from __future__ import annotations

from enum import StrEnum

from skdp._numbers import shown


class Adjacency(StrEnum):
    """Neighbouring relation between two data sets with the same, public number of rows.

    ``zero_out``
        One record is replaced by a null record, which contributes nothing to any sum.
    ``replace_one``
        One record is replaced by any other record; a sum of bounded contributions can move
        by up to twice the bound, so the same noise guarantees about twice the epsilon.
    """

    ZERO_OUT = "zero_out"
    REPLACE_ONE = "replace_one"

    @classmethod
    def parse(cls, value: object) -> Adjacency:
        """Turn a user's word into the relation, or say which words are known."""
        if isinstance(value, str) and value in [member.value for member in cls]:
            return cls(value)
        known = ", ".join(repr(member.value) for member in cls)
        raise ValueError(f"adjacency must be one of {known}; got {shown(value)}.")
