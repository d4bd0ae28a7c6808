"""What was seen, counted, and what it says with confidence.

:class:`~escapade.learning.evidence.Evidence` counts transitions, rewards and costs;
:class:`~escapade.learning.confidence.Confidence` turns counts into intervals that hold
at every moment of a lifetime at once.
"""

from escapade.learning.confidence import Confidence
from escapade.learning.evidence import Evidence

__all__ = ["Confidence", "Evidence"]
