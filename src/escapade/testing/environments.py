"""Is it an environment for one lifetime?  What every world has to get right.

The convention is Gymnasium's, with three additions: the cost of a step stands in
``info["cost"]`` (a number, or an array with one entry a channel), the actions available
next stand in ``info["action_mask"]`` (after a reset too), and nothing ever ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.errors import refusal
from escapade.model.cmdp import CMDP
from escapade.testing.laws import require
from escapade.typing import FloatArray

__all__ = ["check_env"]

_MISJUDGED = 1e-9  # probability that a true environment fails the comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    states: list[int]
    actions: list[int]
    rewards: list[float]
    costs: list[FloatArray]


def check_env(
    env: Any, *, cmdp: CMDP | None = None, steps: int = 500, seed: int = 0
) -> None:
    """Hold an environment to the laws of a world.

    It is stepped through with random available actions, twice from the same seed.  With
    a model at hand, every step has to be possible in it, samples have to lie in its
    bounds, and frequencies and averages have to agree with its numbers: a true
    environment fails that comparison with probability below 1e-9.

    Parameters
    ----------
    env
        The environment, with discrete observations and actions.
    cmdp
        The model it is said to follow; by default ``env.cmdp``, if it has one.
    steps
        How many steps to take.
    seed
        Seed of the environment and of the actions.

    Raises
    ------
    AssertionError
        With the law and the numbers.

    Examples
    --------
    >>> import escapade as ep
    >>> check_env(ep.environments.three_state_loop().env)
    """
    if steps < 1:
        raise refusal("steps", "a number of at least 1", steps)
    name = type(env).__name__
    model: CMDP | None = getattr(env, "cmdp", None) if cmdp is None else cmdp
    first = _live(env, model, steps, seed, name)
    second = _live(env, model, steps, seed, name)
    same = first.states == second.states and first.rewards == second.rewards
    same &= all(map(np.array_equal, first.costs, second.costs))
    require(same, "lives the same life from the same seed", name, f"seed {seed}")
    if model is not None:
        _check_model(first, model, name)


def _live(env: Any, cmdp: CMDP | None, steps: int, seed: int, name: str) -> _Path:
    rng = np.random.default_rng(seed)
    state, info = env.reset(seed=seed)
    path = _Path(states=[], actions=[], rewards=[], costs=[])
    path.states.append(_read_state(env, state, f"{name}.reset"))
    channels = cmdp.n_costs if cmdp is not None else None
    for step in range(steps):
        place = f"{name}.step, step {step}"
        mask = _read_mask(env, info, cmdp, path.states[-1], place)
        action = int(rng.choice(np.flatnonzero(mask)))
        state, reward, terminated, truncated, info = env.step(action)
        require(
            not (terminated or truncated),
            "never ends (one lifetime)",
            place,
            f"terminated {terminated}, truncated {truncated}",
        )
        require(
            isinstance(reward, float) and math.isfinite(reward),
            "pays a finite float",
            place,
            repr(reward),
        )
        require("cost" in info, 'tells info["cost"]', place, sorted(info))
        cost = np.atleast_1d(np.asarray(info["cost"], dtype=np.float64))
        channels = cost.size if channels is None else channels
        fits = cost.shape == (channels,) and bool(np.isfinite(cost).all())
        require(fits, f"charges {channels} finite costs", place, info["cost"])
        path.actions.append(action)
        path.rewards.append(reward)
        path.costs.append(cost)
        path.states.append(_read_state(env, state, place))
    return path


def _read_state(env: Any, state: Any, place: str) -> int:
    inside = state in env.observation_space
    require(inside, "observes a state of its space", place, repr(state))
    return int(state)


def _read_mask(
    env: Any, info: dict[str, Any], cmdp: CMDP | None, state: int, place: str
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    require("action_mask" in info, 'tells info["action_mask"]', place, sorted(info))
    mask = np.asarray(info["action_mask"]).astype(np.bool_)
    n_actions = int(env.action_space.n)
    require(mask.shape == (n_actions,), "masks every action", place, mask.shape)
    require(bool(mask.any()), "offers an action", place, mask)
    if cmdp is not None:
        actions = cmdp.pair_action[cmdp.state_ptr[state] : cmdp.state_ptr[state + 1]]
        require(
            np.array_equal(np.flatnonzero(mask), actions),
            "offers the actions of the model",
            f"{place}, state {state}",
            f"{np.flatnonzero(mask)} for {actions}",
        )
    return mask


def _check_model(path: _Path, cmdp: CMDP, name: str) -> None:
    """Compare what was lived with the model, allowing for chance."""
    pairs = np.array(
        [
            cmdp.pair(state, action)
            for state, action in zip(path.states[:-1], path.actions, strict=True)
        ]
    )
    following = np.array(path.states[1:])
    seen, place_of = np.unique(pairs, return_inverse=True)
    rows = cmdp.transition_matrix[seen].toarray()
    impossible = rows[place_of, following] == 0.0
    step = int(np.argmax(impossible))
    require(
        not impossible.any(),
        "goes where the model allows",
        f"{name}, step {step}, {cmdp.describe_pair(int(pairs[step]))}",
        f"state {following[step]}",
    )
    samples = np.column_stack([path.rewards, np.array(path.costs)])
    bounds = np.concatenate([[cmdp.reward_max], cmdp.cost_max])
    outside = (samples < 0.0) | (samples > bounds)
    step = int(np.argmax(outside.any(axis=1)))
    require(
        not outside.any(),
        "samples lie in [0, reward_max] and [0, cost_max]",
        f"{name}, step {step}",
        f"{samples[step]} for the bounds {bounds}",
    )
    counts = np.bincount(pairs, minlength=cmdp.n_pairs)
    # Hoeffding for each frequency and each average, all at once
    trials = 2 * seen.size * (cmdp.n_states + bounds.size)
    radius = np.sqrt(np.log(trials / _MISJUDGED) / (2.0 * counts[seen]))
    means = np.vstack([cmdp.reward, cmdp.cost])
    for row, (pair, width) in enumerate(zip(seen, radius, strict=True)):
        place = f"{name}, {cmdp.describe_pair(int(pair))}, {counts[pair]} visits"
        lived = pairs == pair
        shares = np.bincount(following[lived], minlength=cmdp.n_states) / counts[pair]
        far = np.abs(shares - rows[row])
        require(
            bool((far <= width).all()),
            "goes as often as the model says",
            place,
            f"{far.max():.3g} off, {radius[row]:.3g} allowed",
        )
        off = np.abs(samples[lived].mean(axis=0) - means[:, pair])
        require(
            bool((off <= width * bounds + 1e-9 * (1.0 + bounds)).all()),
            "pays and charges on average what the model says",
            place,
            f"{off} off, {width * bounds} allowed",
        )
