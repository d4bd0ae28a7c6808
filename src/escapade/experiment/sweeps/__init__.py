"""Sweeps: worlds × settings × seeds, on all cores or on a cluster.

``spec``             what a sweep is
``store``            where it is kept, and how it is read
``table``            the one table of what came of it
``sweeping``         handing out runs, and minding who dies
``engines``          what a sweep asks of those who live its runs
``on_this_machine``  joblib
``on_ray``           Ray
``work``             what a worker does
"""

from escapade.experiment.sweeps.spec import SweepSpec, WorldGrid, load_sweep
from escapade.experiment.sweeps.store import Sweep
from escapade.experiment.sweeps.sweeping import Standing, sweep

__all__ = ["Standing", "Sweep", "SweepSpec", "WorldGrid", "load_sweep", "sweep"]
