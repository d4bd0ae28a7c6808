"""Callbacks for experiment trackers: TensorBoard, MLflow, Weights & Biases.

Nothing here is imported by the core, and a tracker only when it is used.  The numbers
are those of each block: reward and cost a step, promise, reserved, known states, and
the certificate's gap once the agent has looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from escapade.errors import refusal
from escapade.experiment.callbacks import Moment, Silent

__all__ = ["MLflow", "TensorBoard", "WeightsAndBiases", "scalars"]


def scalars(moment: Moment) -> dict[str, float]:
    """Return what a moment is in numbers, by names that trackers take."""
    agent, trace = moment.agent, moment.trace
    found = {
        "reward_per_step": float(trace.rewards.mean()),
        "known_states": float(agent.planned.plan.known.sum()),
        "plans": float(agent.plans),
    }
    for k in range(trace.costs.shape[1]):
        found[f"cost_per_step/{k}"] = float(trace.costs[:, k].mean())
        found[f"promise/{k}"] = float(trace.promise[-1, k])
        found[f"reserved/{k}"] = float(trace.reserved[-1, k])
    if agent.gap is not None:
        found["certificate_gap"] = float(agent.gap)
    return found


def _results(summary: Mapping[str, Any]) -> dict[str, float]:
    certificate = summary["certificate"]
    return {
        "final/steps": float(summary["steps"]),
        "final/promise_kept": float(summary["promise_kept"]),
        "final/value_lower": float(certificate["value_lower"]),
        "final/certificate_gap": float(certificate["gap"]),
    }


class TensorBoard(Silent):
    """Writes into TensorBoard.

    Parameters
    ----------
    writer
        A ``SummaryWriter``, of PyTorch or of tensorboardX.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def on_step(self, moment: Moment, /) -> None:
        """Add the numbers of a block."""
        for name, value in scalars(moment).items():
            self._writer.add_scalar(name, value, moment.steps)

    def on_end(self, summary: Mapping[str, Any], /) -> None:
        """Add the outcome."""
        for name, value in _results(summary).items():
            self._writer.add_scalar(name, value, int(summary["steps"]))
        self._writer.add_text("verdict", str(summary["verdict"]))
        self._writer.flush()


class MLflow(Silent):
    """Logs into the active run of MLflow."""

    def __init__(self) -> None:
        self._mlflow = _installed("mlflow")

    def on_step(self, moment: Moment, /) -> None:
        """Log the numbers of a block."""
        self._mlflow.log_metrics(scalars(moment), step=moment.steps)

    def on_end(self, summary: Mapping[str, Any], /) -> None:
        """Log the outcome."""
        self._mlflow.log_metrics(_results(summary), step=int(summary["steps"]))
        self._mlflow.set_tag("verdict", str(summary["verdict"]))


class WeightsAndBiases(Silent):
    """Logs into the run that ``wandb.init`` began."""

    def __init__(self) -> None:
        self._wandb = _installed("wandb")

    def on_step(self, moment: Moment, /) -> None:
        """Log the numbers of a block."""
        self._wandb.log(scalars(moment), step=moment.steps)

    def on_end(self, summary: Mapping[str, Any], /) -> None:
        """Log the outcome."""
        self._wandb.log(_results(summary), step=int(summary["steps"]))
        self._wandb.run.summary["verdict"] = str(summary["verdict"])


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise refusal(
            "tracker", f"{name} to be installed", f"none; pip install {name}"
        ) from None
