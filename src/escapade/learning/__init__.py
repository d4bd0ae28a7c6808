"""What was seen, counted, and what it says with confidence.

:class:`~escapade.learning.evidence.Evidence` counts transitions, rewards and costs;
:class:`~escapade.learning.confidence.Confidence` turns counts into intervals that hold
at every moment of a lifetime at once; :mod:`escapade.learning.known` says which states
that makes known.
"""

from escapade.learning.confidence import Bounds, Confidence
from escapade.learning.evidence import Evidence
from escapade.learning.known import known_by_certificate, known_by_quota, row_widths

__all__ = [
    "Bounds",
    "Confidence",
    "Evidence",
    "known_by_certificate",
    "known_by_quota",
    "row_widths",
]
