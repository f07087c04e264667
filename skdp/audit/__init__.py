"""Tests of the guarantee of a fit. See the page "Audit it yourself"."""

from skdp.audit.black_box import AuditReport, CanaryReport, canaries, report
from skdp.audit.neighbours import NeighbouringPair, hostile_pairs, made_up_data
from skdp.audit.replaying import Finding, ReplayedRelease, ReplayReport, replay
from skdp.audit.sources import check_source

__all__ = [
    "AuditReport",
    "CanaryReport",
    "Finding",
    "NeighbouringPair",
    "ReplayReport",
    "ReplayedRelease",
    "canaries",
    "check_source",
    "hostile_pairs",
    "made_up_data",
    "replay",
    "report",
]
