"""A Gymnasium environment over a CMDP: the world as an agent meets it.

Spaces are discrete.  A step draws, in this order and from Gymnasium's own generator,

1. the next state, by inverting its cumulative distribution (one number);
2. the reward, and then the cost of each channel, by the laws of
   :mod:`escapade.environments.noise` (one number each, none if deterministic).

The means of the laws are those of the model.  A cost may hang on the next state as
well; then ``cost_given_next`` holds its mean for each entry of the transitions, and the
environment checks that these average to the means of the model.

The model is continuing, so ``terminated`` and ``truncated`` are always false; put
:class:`gymnasium.wrappers.TimeLimit` around it where an end is wanted.  The cost stands
in ``info["cost"]``, a float for one channel and an array for several, and the actions
available next in ``info["action_mask"]``, in the form that ``action_space.sample``
takes.
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import gymnasium
import numpy as np

from escapade.environments.noise import Noise, draw_sample, read_noise
from escapade.environments.rendering import Board, draw_pixels, draw_text
from escapade.errors import refusal
from escapade.model.arguments import read_numbers
from escapade.model.cmdp import CMDP
from escapade.model.sampling import Sampler
from escapade.typing import ArrayLike, FloatArray

__all__ = ["CMDPEnv"]

_RENDER_MODES = ("ansi", "rgb_array")
_AVERAGE_WITHIN = 1e-9


class CMDPEnv(gymnasium.Env[int, int]):
    """A CMDP that can be stepped through.

    Parameters
    ----------
    cmdp
        The model; its rewards and costs are the means of what is seen.
    reward_noise, cost_noise
        Law of the samples: ``"deterministic"``, ``"bernoulli"`` or ``"uniform"``.
    cost_given_next
        Mean costs given the next state as well, ``(K, nnz)``; by default the costs
        depend on the state and the action alone.
    render_mode
        ``"ansi"`` for text, ``"rgb_array"`` for pixels, or ``None``.

    Examples
    --------
    >>> import escapade as ep
    >>> env = ep.environments.wall_cycle(size=4).make_env(render_mode="ansi")
    >>> state, info = env.reset(seed=1)
    >>> state, reward, terminated, truncated, info = env.step(3)
    >>> state, reward, info["cost"]
    (1, 1.0, 0.0)
    >>> print(env.render())
    + + + +
    + . . +
    + . . +
    + @ + +
    """

    # Gymnasium declares it without ClassVar
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(_RENDER_MODES),
        "render_fps": 4,
    }

    def __init__(
        self,
        cmdp: CMDP,
        *,
        reward_noise: str = "deterministic",
        cost_noise: str = "deterministic",
        cost_given_next: ArrayLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(cmdp, CMDP):
            raise refusal("cmdp", "a CMDP", type(cmdp).__name__)
        if render_mode is not None and render_mode not in _RENDER_MODES:
            raise refusal(
                "render_mode",
                f"None or one of {list(_RENDER_MODES)}",
                repr(render_mode),
            )
        self.cmdp = cmdp
        self.reward_noise: Noise = read_noise("reward_noise", reward_noise)
        self.cost_noise: Noise = read_noise("cost_noise", cost_noise)
        self.cost_given_next = _read_cost_given_next(cost_given_next, cmdp)
        self.render_mode = render_mode
        # gymnasium.make asks for spaces over int64 scalars; plain integers belong too
        self.observation_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            cmdp.n_states
        )
        self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(
            cmdp.n_actions
        )
        self.plant = f"CMDP {cmdp.fingerprint[:12]}"
        """What logs of it call it."""
        self._sampler = Sampler(cmdp)
        self._mask = cmdp.available.astype(np.int8)
        self._state: int | None = None
        self._board: Board | None = None

    @property
    def state(self) -> int:
        """The state the world is in; refused before the first reset."""
        if self._state is None:
            raise refusal("env", "a call of reset first", "an environment not reset")
        return self._state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin anew from the start distribution, or from ``options["state"]``."""
        super().reset(seed=seed)
        choices = dict(options or {})
        chosen = choices.pop("state", None)
        if choices:
            raise refusal("options", "no name but 'state'", repr(min(choices, key=str)))
        if chosen is None:
            self._state = self._sampler.start_state(self.np_random)
        else:
            self._state = self._read_index(
                "options['state']", chosen, self.cmdp.n_states
            )
        return self._state, {"action_mask": self._mask[self._state].copy()}

    def step(
        self, action: SupportsIndex
    ) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action that is available in the current state."""
        cmdp, state = self.cmdp, self.state
        chosen = self._read_index("action", action, cmdp.n_actions)
        pair = cmdp.pair(state, chosen)
        rng = self.np_random
        self._state = self._sampler.next_state(state, chosen, rng)
        reward = draw_sample(
            self.reward_noise, float(cmdp.reward[pair]), cmdp.reward_max, rng
        )
        costs = [
            draw_sample(self.cost_noise, float(mean), float(maximum), rng)
            for mean, maximum in zip(
                self._mean_costs(pair, self._state), cmdp.cost_max, strict=True
            )
        ]
        info = {
            "cost": costs[0] if len(costs) == 1 else np.array(costs),
            "action_mask": self._mask[self._state].copy(),
        }
        return self._state, reward, False, False, info

    def place(self, state: SupportsIndex) -> None:
        """Put the world into a state, as a compiled loop does that lived on for it."""
        self._state = self._read_index("state", state, self.cmdp.n_states)

    def render(self) -> Any:
        """Return the picture that ``render_mode`` asked for; ``None`` without one."""
        if self.render_mode is None:
            return None
        if self._board is None:
            self._board = Board.of(self.cmdp)
        draw = draw_text if self.render_mode == "ansi" else draw_pixels
        return draw(self._board, self.state)

    def _mean_costs(self, pair: int, next_state: int) -> FloatArray:
        """Return the mean of each cost, given all that it may depend on."""
        cmdp = self.cmdp
        if self.cost_given_next is None:
            means: FloatArray = cmdp.cost[:, pair]
        else:
            low, high = cmdp.row_ptr[pair], cmdp.row_ptr[pair + 1]
            place = np.searchsorted(cmdp.successor[low:high], next_state)
            means = self.cost_given_next[:, low + place]
        return means

    @staticmethod
    def _read_index(argument: str, value: object, size: int) -> int:
        expected = f"a whole number in 0..{size - 1}"
        try:
            index = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise refusal(argument, expected, repr(value)) from None
        if isinstance(value, bool) or not 0 <= index < size:
            raise refusal(argument, expected, repr(value))
        return index


def _read_cost_given_next(value: ArrayLike | None, cmdp: CMDP) -> FloatArray | None:
    """Return means that average to those of the model, read-only."""
    if value is None:
        return None
    argument = "cost_given_next"
    means = read_numbers(argument, value)
    shape = (cmdp.n_costs, cmdp.nnz)
    if means.shape != shape:
        raise refusal(argument, f"shape {shape}", f"shape {means.shape}")
    for k, (channel, maximum) in enumerate(zip(means, cmdp.cost_max, strict=True)):
        wrong = ~((channel >= 0.0) & (channel <= maximum))
        if wrong.any():
            entry = int(np.argmax(wrong))
            expected = f"numbers in [0, {maximum:g}]"
            where = f"channel {k}, entry {entry}"
            raise refusal(argument, expected, float(channel[entry]), where)
        average = np.add.reduceat(channel * cmdp.probability, cmdp.row_ptr[:-1])
        off = np.abs(average - cmdp.cost[k]) > _AVERAGE_WITHIN * max(1.0, maximum)
        if off.any():
            pair = int(np.argmax(off))
            raise refusal(
                argument,
                f"an average of {cmdp.cost[k, pair]:.10g}, as in the model",
                float(average[pair]),
                f"channel {k}, {cmdp.describe_pair(pair)}",
            )
    means.flags.writeable = False
    return means
