"""Runs: what they are, where they are kept, how they are lived, resumed and verified.

A :class:`RunSpec` says what a run is; :class:`RunStore` and :class:`Run` find and read
it; :func:`live` begins it, or goes on with it after an interruption, whatever that was.
:func:`compare` lets several agents live in one world; :func:`sweep` lives the runs of a
:class:`SweepSpec`, on all cores or on a cluster.
"""

from escapade.experiment.callbacks import Callback, Moment, Silent
from escapade.experiment.comparison import Comparison, Contestant, compare
from escapade.experiment.journal import Event
from escapade.experiment.plant import Plant, open_plant
from escapade.experiment.running import Interruption, live
from escapade.experiment.spec import RunSpec, load_spec
from escapade.experiment.store import PlantRun, Run, RunStore, find_run
from escapade.experiment.sweeps import Sweep, SweepSpec, load_sweep, sweep

__all__ = [
    "Callback",
    "Comparison",
    "Contestant",
    "Event",
    "Interruption",
    "Moment",
    "Plant",
    "PlantRun",
    "Run",
    "RunSpec",
    "RunStore",
    "Silent",
    "Sweep",
    "SweepSpec",
    "compare",
    "find_run",
    "live",
    "load_spec",
    "load_sweep",
    "open_plant",
    "sweep",
]
