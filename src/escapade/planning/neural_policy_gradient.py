"""The policy gradient with a neural network, in PyTorch: the one file that touches it.

The network reads what describes a state (by default which one it is; coordinates, or
any features, let it carry over what it learned from one state to others) and returns
one number an action; the policy is their softmax over the actions that are available.
The trajectories are those of the tabular gradient, and so is everything around it: the
score of a pair times ``log π`` of that pair, summed, is the surrogate whose gradient is
followed.  Steps are those of Adam without momentum, which would carry the iterates of a
saddle point ever further past it.

More parameters do not make the answer optimal (errata E34); it is judged and bounded as
every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from escapade.errors import MissingExtraError, refusal
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.planning.gradient_run import Actor, GradientSolver, check_count
from escapade.planning.learning_rate import LearningRate
from escapade.planning.saddle_game import SaddleGame
from escapade.typing import ArrayLike, FloatArray

if TYPE_CHECKING:
    import torch

__all__ = ["Features", "NeuralPolicyGradient"]

Features: TypeAlias = Literal["state", "coordinates"]
"""What the network reads: which state it is, or where it lies."""

_POLICY_RATE = LearningRate(0.003, "sqrt", 1_000.0)
_MULTIPLIER_RATE = LearningRate(0.03, "sqrt", 1_000.0)  # slower than the policy
_SQUARES = 0.99  # memory of the mean squares by which steps are scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralPolicyGradient(GradientSolver):
    """Climbs with a neural network; needs the extra ``torch``.

    Parameters
    ----------
    layers
        Widths of the hidden layers.
    features
        What the network reads: ``"state"`` (one number a state, 1 for the present one),
        ``"coordinates"`` (those of the problem, scaled), or an array ``(S, n)``.
    policy_rate
        Learning rate of Adam.
    iterations, trajectories, horizon, multiplier_rate, per_visit, baseline, \
refresh_every, judge_every, seed, time_limit, progress, checkpoint, checkpoint_every
        As for :class:`~escapade.planning.policy_gradient.PolicyGradient`.

    Raises
    ------
    MissingExtraError
        When solving, if PyTorch is not installed.
    """

    policy_rate: float | LearningRate = _POLICY_RATE
    multiplier_rate: float | LearningRate = _MULTIPLIER_RATE
    layers: tuple[int, ...] = (64, 64)
    features: Features | ArrayLike = "state"

    def __post_init__(self) -> None:
        GradientSolver.__post_init__(self)
        for width in self.layers:
            check_count("layers", width)
        if isinstance(self.features, str):
            if self.features not in ("state", "coordinates"):
                raise refusal(
                    "features",
                    "'state', 'coordinates' or an array (S, n)",
                    repr(self.features),
                )
        else:
            array = read_numbers("features", self.features)
            if not np.isfinite(array).all():
                raise refusal("features", "finite numbers", "others among them")
            array.flags.writeable = False
            object.__setattr__(self, "features", array)

    def make_actor(self, problem: CMDP, rng: np.random.Generator) -> Actor:
        """Return a network with random parameters."""
        return _Network(problem, self._inputs(problem), tuple(self.layers), rng)

    def settings(self, game: SaddleGame) -> dict[str, Any]:
        """Name everything that the course of a run depends on."""
        inputs = self._inputs(game.problem)
        return {
            **GradientSolver.settings(self, game),
            "layers": list(self.layers),
            "features": [list(inputs.shape), float(np.cos(inputs).sum())],
        }

    def _inputs(self, problem: CMDP) -> FloatArray:
        """Return what the network reads in each state, ``(S, n)``."""
        if isinstance(self.features, str) and self.features == "state":
            return np.eye(problem.n_states)
        if isinstance(self.features, str):
            if problem.coordinates is None:
                raise refusal("features", "'state': the problem has no coordinates", 0)
            array = problem.coordinates
            spread = np.maximum(array.max(axis=0) - array.min(axis=0), 1e-12)
            scaled: FloatArray = 2.0 * (array - array.min(axis=0)) / spread - 1.0
            return scaled
        given: FloatArray = np.asarray(self.features, dtype=np.float64)
        if given.ndim != 2 or len(given) != problem.n_states:
            raise refusal(
                "features", f"shape ({problem.n_states}, n)", f"shape {given.shape}"
            )
        return given


class _Network:
    """A perceptron from features to one number an action, moved by Adam."""

    def __init__(
        self,
        problem: CMDP,
        inputs: FloatArray,
        layers: tuple[int, ...],
        rng: np.random.Generator,
    ) -> None:
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("torch", "torch") from error
        self.torch = torch
        self.inputs = torch.from_numpy(np.array(inputs))
        self.state = torch.from_numpy(problem.pair_state.astype(np.int64))
        self.action = torch.from_numpy(problem.pair_action.astype(np.int64))
        self.missing = torch.from_numpy(~problem.available)
        widths = (int(inputs.shape[1]), *layers, problem.n_actions)
        self.parameters: list[torch.Tensor] = []
        for wide, (rows, columns) in enumerate(pairwise(widths)):
            # the last layer begins at 0, so that the first policy draws evenly
            size = 0.0 if wide == len(layers) else np.sqrt(1.0 / rows)
            matrix = size * rng.standard_normal((rows, columns))
            for array in (matrix, np.zeros(columns)):
                parameter = torch.from_numpy(array)
                parameter.requires_grad_(True)
                self.parameters.append(parameter)
        self.adam = torch.optim.Adam(
            self.parameters, lr=1.0, betas=(0.0, _SQUARES), maximize=True
        )

    def log_weights(self) -> torch.Tensor:
        """Return ``log π`` of every pair, ``[pairs]``."""
        signal = self.inputs
        for matrix, shift in zip(
            self.parameters[0::2], self.parameters[1::2], strict=True
        ):
            if matrix is not self.parameters[0]:
                signal = self.torch.tanh(signal)
            signal = signal @ matrix + shift
        masked = signal.masked_fill(self.missing, -float("inf"))
        logs = self.torch.log_softmax(masked, dim=1)
        return logs[self.state, self.action]

    def weights(self) -> FloatArray:
        """Return the probability of each pair given its state, ``[pairs]``."""
        with self._one_thread(), self.torch.no_grad():
            weights: FloatArray = self.log_weights().exp().numpy()
        return weights

    def climb(self, score: FloatArray, rate: float) -> None:
        """Take one step of Adam along ``Σ score · ∇ log π``."""
        self.adam.param_groups[0]["lr"] = rate
        self.adam.zero_grad()
        with self._one_thread():
            surrogate = (self.torch.from_numpy(score) * self.log_weights()).sum()
            self.torch.autograd.backward(surrogate)
            self.adam.step()

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Keep to one thread: more cost time here, and would add in another order."""
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(1)
        try:
            yield
        finally:
            self.torch.set_num_threads(before)

    def arrays(self) -> dict[str, Any]:
        """Return the parameters and the moments of Adam."""
        arrays: dict[str, Any] = {}
        for i, parameter in enumerate(self.parameters):
            arrays[f"parameter_{i}"] = parameter.detach().numpy()
            for name, value in self.adam.state[parameter].items():
                arrays[f"adam_{i}_{name}"] = value.numpy()
        return arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take the parameters and the moments of Adam from a checkpoint."""
        with self.torch.no_grad():
            for i, parameter in enumerate(self.parameters):
                parameter.copy_(self.torch.from_numpy(arrays[f"parameter_{i}"]))
                self.adam.state[parameter] = {
                    name.removeprefix(f"adam_{i}_"): self.torch.from_numpy(
                        np.array(value)
                    )
                    for name, value in arrays.items()
                    if name.startswith(f"adam_{i}_")
                }
