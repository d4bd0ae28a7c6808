"""Which pairs share their model, and which rules tie the models of different pairs.

Pairs that share their model form a *group*; a group is what is decided about.  Rules
between pairs become links between their groups, kept in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from escapade.errors import refusal
from escapade.kernels.action_evidence import propagate_models
from escapade.model.arguments import read_integers, read_numbers
from escapade.model.layout import read_array
from escapade.typing import ArrayLike, BoolArray, IntArray
from escapade.uncertainty.action_models_description import Spaces, Transfer
from escapade.uncertainty.rows import frozen

__all__ = ["Groups", "Links", "link_groups", "read_groups"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """The group of each pair, ``of``; the pairs of each group, ``members``."""

    of: IntArray
    ptr: IntArray
    members: IntArray

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.ptr.size - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Links:
    """Rules between groups, as :func:`propagate_models` takes them.

    ``possible`` is ``[rules, M, M]``; the links of group ``g`` are ``ptr[g]`` up to
    ``ptr[g + 1]`` in ``linked``, ``rule`` and ``backward``.
    """

    ptr: IntArray
    linked: IntArray
    rule: IntArray
    backward: BoolArray
    possible: BoolArray

    def propagate(self, changed: IntArray, left: BoolArray) -> int:
        """Rule out what contradicts what is left, in place; see the kernel."""
        if self.linked.size == 0:
            return -1
        return int(
            propagate_models(
                changed,
                self.ptr,
                self.linked,
                self.rule,
                self.backward,
                self.possible,
                left,
            )
        )


def read_groups(groups: ArrayLike | None, spaces: Spaces) -> Groups:
    """Return groups from labels ``(S, A)`` or ``(pairs,)``; −1: a group of one's own.

    Labels are whole numbers; by default no pairs share their model.
    """
    n_pairs = spaces.n_pairs
    own = np.arange(n_pairs, dtype=np.int64)
    if groups is None:
        return Groups(
            of=frozen(own),
            ptr=frozen(np.arange(n_pairs + 1, dtype=np.int64)),
            members=frozen(own),
        )
    labels = read_array("groups", "an array of whole numbers", groups)
    if labels.shape == (spaces.n_states, spaces.n_actions):
        labels = labels[spaces.pair_state, spaces.pair_action]
    labels = read_integers("groups", labels)
    if labels.shape != (n_pairs,):
        raise refusal(
            "groups",
            f"shape ({spaces.n_states}, {spaces.n_actions}) or ({n_pairs},)",
            f"shape {labels.shape}",
        )
    if labels.min() < -1:
        raise refusal("groups", "labels of at least 0, or -1", int(labels.min()))
    alone = labels == -1
    labels[alone] = labels.max() + 1 + own[alone]
    _, of = np.unique(labels, return_inverse=True)
    members = np.argsort(of, kind="stable")
    n_groups = int(of.max()) + 1
    ptr = np.searchsorted(of[members], np.arange(n_groups + 1))
    return Groups(
        of=frozen(of.astype(np.int64)),
        ptr=frozen(ptr.astype(np.int64)),
        members=frozen(members.astype(np.int64)),
    )


def link_groups(
    transfers: Sequence[Transfer], groups: Groups, n_models: int, spaces: Spaces
) -> Links:
    """Return the links that the rules make between groups."""
    first, second, rule, backward = [], [], [], []
    possible = np.zeros((len(transfers), n_models, n_models), dtype=np.bool_)
    for r, transfer in enumerate(transfers):
        label = "transfers" if len(transfers) == 1 else f"transfers[{r}]"
        rho = read_numbers(f"{label}.rho", transfer.rho)
        if rho.shape != (n_models, n_models):
            raise refusal(
                f"{label}.rho", f"shape ({n_models}, {n_models})", f"shape {rho.shape}"
            )
        if not (rho >= 0.0).all():
            raise refusal(f"{label}.rho", "numbers of at least 0", float(rho.min()))
        possible[r] = rho > 0.0
        ends = []
        for name in ("source", "target"):
            pairs = read_integers(f"{label}.{name}", getattr(transfer, name))
            if pairs.size and not 0 <= pairs.min() <= pairs.max() < spaces.n_pairs:
                bad = pairs[(pairs < 0) | (pairs >= spaces.n_pairs)]
                raise refusal(
                    f"{label}.{name}", f"pairs in 0..{spaces.n_pairs - 1}", int(bad[0])
                )
            ends.append(groups.of[pairs])
        if ends[0].shape != ends[1].shape:
            raise refusal(
                f"{label}.target",
                f"{ends[0].size} pairs, as many as sources",
                ends[1].size,
            )
        own = ends[0] == ends[1]
        if own.any():
            raise refusal(
                f"{label}.target",
                "a pair whose model is not that of its source",
                "one of the same group",
                f"position {int(np.argmax(own))}",
            )
        first += [ends[0], ends[1]]
        second += [ends[1], ends[0]]
        rule.append(np.full(2 * own.size, r))
        backward += [np.zeros(own.size, np.bool_), np.ones(own.size, np.bool_)]
    nothing = np.empty(0, dtype=np.int64)
    table = np.stack(
        [
            np.concatenate([*first, nothing]),
            np.concatenate([*second, nothing]),
            np.concatenate([*rule, nothing]),
            np.concatenate([*backward, nothing]).astype(np.int64),
        ]
    ).astype(np.int64)
    table = np.unique(table, axis=1)  # sorted by the first row
    ptr = np.searchsorted(table[0], np.arange(groups.size + 1))
    return Links(
        ptr=frozen(ptr.astype(np.int64)),
        linked=frozen(np.ascontiguousarray(table[1])),
        rule=frozen(np.ascontiguousarray(table[2])),
        backward=frozen(table[3].astype(np.bool_)),
        possible=frozen(possible),
    )
