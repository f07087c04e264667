"""Tests of the guarantee of a fit. See the page "Audit it yourself"."""

from skdp.audit.black_box import CanaryReport, canaries
from skdp.audit.comparing import Finding, ReplayedRelease, ReplayReport
from skdp.audit.neighbours import NeighbouringPair, hostile_pairs, made_up_data
from skdp.audit.replaying import replay
from skdp.audit.reporting import AuditReport, report
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
