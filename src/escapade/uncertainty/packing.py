"""Uncertainty sets as arrays and one tree of plain words, for files without pickle.

:func:`pack_set` takes a set apart, :func:`unpack_set` puts it together again, bit for
bit.  What comes from a file is checked as if a stranger had written it: an index out of
range would otherwise be followed by compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.errors import refusal
from escapade.model.layout import Pairs
from escapade.uncertainty.action_models import ActionModels, Weighed
from escapade.uncertainty.action_models_branches import Branches
from escapade.uncertainty.action_models_links import Groups, Links
from escapade.uncertainty.action_models_statement import Statement
from escapade.uncertainty.base import UncertaintySet
from escapade.uncertainty.factor_matrix import FactorMatrix
from escapade.uncertainty.intersection import Intersection
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.kl_ball import KLBall
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.models import Models
from escapade.uncertainty.rows import Rows, frozen

__all__ = ["pack_set", "unpack_set"]

_RECORDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (Branches, Groups, Links, Pairs, Rows, Statement, Weighed)
}
_MOST_DEEP = 20


# -- taking apart ----------------------------------------------------------------------


def pack_set(
    sets: UncertaintySet, name: str = "set"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a tree that JSON can hold, and the arrays that it names.

    Parameters
    ----------
    sets
        One of the shipped sets, as it was built or narrowed; not one that is charged
        or lifted.
    name
        With what the names of the arrays begin.
    """
    arrays: dict[str, np.ndarray] = {}
    kind = type(sets).__name__
    if type(sets) not in _PARTS:
        raise refusal("sets", f"one of {sorted(cls.__name__ for cls in _PARTS)}", kind)
    parts = _PARTS[type(sets)](sets)
    return {"set": kind, **_pack(parts, name, arrays)}, arrays


def _pack(value: Any, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, UncertaintySet):
        tree, own = pack_set(value, name)
        arrays.update(own)
        return tree
    if type(value).__name__ in _RECORDS:
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        tree = _pack(parts, name, arrays)
        return {"record": type(value).__name__, **tree}
    if isinstance(value, dict):
        packed = {key: _pack(v, f"{name}.{key}", arrays) for key, v in value.items()}
        return {"parts": packed}
    if isinstance(value, list | tuple):
        return {"list": [_pack(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]}
    return {"value": value}


_PARTS: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    Interval: lambda s: {"rows": s.rows, "lower": s.lower, "upper": s.upper},
    L1Ball: lambda s: {"rows": s.rows, "radius": s.radius},
    KLBall: lambda s: {"rows": s.rows, "radius": s.radius},
    Models: lambda s: {
        "rows": s._rows,
        "probability": s.model_rows,
        "active": s.active,
        "throughout": not s.rectangular,
    },
    FactorMatrix: lambda s: {"coefficients": s.coefficients, "factors": s.factors},
    ActionModels: lambda s: {
        "statement": s.statement,
        "left": s.left_in_groups,
        "weighed": s.weighed,
    },
    Intersection: lambda s: {"given": s.given},
}


# -- putting together ------------------------------------------------------------------


def unpack_set(
    tree: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> UncertaintySet:
    """Return the set that :func:`pack_set` took apart.

    Raises
    ------
    InvalidInputError
        If the parts do not fit together.
    """
    built = _unpack(tree, arrays, 0)
    if not isinstance(built, UncertaintySet):
        raise refusal("sets", "a packed set", type(built).__name__)
    return built


def _unpack(tree: Any, arrays: Mapping[str, np.ndarray], depth: int) -> Any:
    if not isinstance(tree, Mapping) or depth > _MOST_DEEP:
        raise refusal("sets", "a tree of parts", type(tree).__name__)
    if "value" in tree:
        return tree["value"]
    if "array" in tree:
        if tree["array"] not in arrays:
            raise refusal("sets", "every array that is named", "one too few")
        # a copy: kernels are compiled for read-only arrays that own their numbers
        return frozen(np.array(arrays[tree["array"]]))
    for key, kind in (("list", list), ("parts", dict)):
        if not isinstance(tree.get(key, kind()), kind):
            raise refusal("sets", f"{key} of parts", type(tree[key]).__name__)
    if "list" in tree:
        return [_unpack(part, arrays, depth + 1) for part in tree["list"]]
    parts = {
        key: _unpack(part, arrays, depth + 1)
        for key, part in tree.get("parts", {}).items()
    }
    if "record" in tree:
        kind = tree["record"]
        if kind not in _RECORDS:
            raise refusal("sets", f"records among {sorted(_RECORDS)}", repr(kind))
        return _record(_RECORDS[kind], parts)
    if "set" in tree:
        if tree["set"] not in _BUILD:
            raise refusal("sets", f"sets among {sorted(_BUILD)}", repr(tree["set"]))
        try:
            return _BUILD[tree["set"]](parts)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise refusal("sets", f"the parts of {tree['set']}", repr(error)) from error
    raise refusal("sets", "a tree of parts", sorted(tree))


def _record(kind: type, parts: dict[str, Any]) -> Any:
    wanted = {f.name for f in fields(kind) if f.init}
    if set(parts) != wanted:
        raise refusal("sets", f"{kind.__name__} with {sorted(wanted)}", sorted(parts))
    if kind is Statement:
        parts = {**parts, "names": tuple(parts["names"])}
    record = kind(**parts)
    try:
        _CHECKS[kind.__name__](record)
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        raise refusal("sets", f"valid {kind.__name__}", str(error)) from error
    return record


def _build_action_models(parts: dict[str, Any]) -> ActionModels:
    statement, left, weighed = parts["statement"], parts["left"], parts["weighed"]
    branches = statement.branches
    _demand(left.dtype == np.bool_, "left", "booleans")
    _demand(
        left.shape == (statement.groups.size, statement.n_kinds),
        "left",
        "one a group and kind",
    )
    for name in ("evidence", "fit", "rate"):
        column = getattr(weighed, name)
        _demand(column.shape == (branches.size,), name, "one number a branch")
    _demand(bool(left.any(axis=1).all()), "left", "a model for every group")
    return ActionModels.restored(statement, left, weighed)


def _build_models(parts: dict[str, Any]) -> Models:
    rows, probability, active = parts["rows"], parts["probability"], parts["active"]
    _demand(
        probability.ndim == 2 and probability.shape[0] == rows.successor.size,
        "probability",
        "one row an entry",
    )
    _demand(
        active.dtype == np.bool_
        and active.shape == (rows.n_rows, probability.shape[1]),
        "active",
        "a mask of models, one row a pair",
    )
    return Models._of(rows, probability, active, throughout=bool(parts["throughout"]))


_BUILD: Mapping[str, Callable[[dict[str, Any]], UncertaintySet]] = {
    "Interval": lambda p: Interval.around(p["rows"], p["lower"], p["upper"]),
    "L1Ball": lambda p: L1Ball.around(p["rows"], p["radius"]),
    "KLBall": lambda p: KLBall.around(p["rows"], p["radius"]),
    "Models": _build_models,
    "FactorMatrix": lambda p: FactorMatrix(
        sp.csr_array(p["coefficients"]), p["factors"]
    ),
    "ActionModels": _build_action_models,
    "Intersection": lambda p: Intersection(*p["given"]),
}


# -- checking --------------------------------------------------------------------------


def _demand(holds: bool, what: str, expected: str) -> None:
    if not holds:
        raise refusal(what, expected, "others", "a packed set")


def _check_pointers(what: str, ptr: Any, size: int) -> None:
    _demand(ptr.ndim == 1 and ptr.dtype == np.int64, what, "whole numbers")
    _demand(ptr.size > 0 and ptr[0] == 0 and ptr[-1] == size, what, f"0 to {size}")
    _demand(bool((np.diff(ptr) >= 0).all()), what, "pointers that do not fall")


def _check_indices(what: str, index: Any, size: int, *, least: int = 0) -> None:
    _demand(index.ndim == 1 and index.dtype.kind == "i", what, "whole numbers")
    inside = index.size == 0 or (index.min() >= least and index.max() < size)
    _demand(bool(inside), what, f"numbers in {least}..{size - 1}")


def _check_rows(rows: Rows) -> None:
    _check_pointers("stored_ptr", rows.stored_ptr, rows.stored.size)
    _check_indices("stored", rows.stored, rows.n_states)
    inner = np.ones(rows.stored.size, dtype=np.bool_)
    first = rows.stored_ptr[:-1]
    inner[first[first < inner.size]] = False
    rising = np.diff(rows.stored, prepend=-1) > 0
    _demand(bool(rising[inner].all()), "stored", "rising successors in each row")
    shape = rows.stored_nominal.shape == rows.stored.shape
    _demand(shape, "stored_nominal", "one number an entry")
    _demand(bool(np.isfinite(rows.stored_nominal).all()), "stored_nominal", "numbers")
    for name in ("pair_state", "pair_action"):
        column = getattr(rows, name)
        if column is not None:
            _demand(column.shape == (rows.n_rows,), name, "one a row")


def _check_branches(branches: Branches) -> None:
    size, near = branches.target.size, branches.uniform.size
    _check_pointers("ptr", branches.ptr, size)
    _demand(bool((np.diff(branches.ptr) > 0).all()), "ptr", "a branch for every pair")
    _check_indices("target", branches.target, np.iinfo(np.int32).max)
    _check_indices("around", branches.around, near, least=-1)
    _check_pointers("near_ptr", branches.near_ptr, branches.near.size)
    _check_indices("near", branches.near, np.iinfo(np.int32).max)
    _demand(branches.near_ptr.size == near + 1, "near_ptr", f"{near + 1} pointers")
    for name in ("around", "low", "high"):
        _demand(getattr(branches, name).shape == (size,), name, "one a branch")
    ordered = (branches.low >= 0.0) & (branches.low <= branches.high)
    rates = ordered & (branches.high <= 1.0)
    _demand(bool(rates.all()), "low", "rates in [0, 1], the least before the most")


def _check_groups(groups: Groups) -> None:
    pairs = groups.of.size
    _check_pointers("ptr", groups.ptr, pairs)
    _check_indices("of", groups.of, groups.size)
    _check_indices("members", groups.members, pairs)
    _demand(groups.members.size == pairs, "members", "every pair")


def _check_links(links: Links) -> None:
    groups, rules = links.ptr.size - 1, links.possible.shape[0]
    _check_pointers("ptr", links.ptr, links.linked.size)
    _check_indices("linked", links.linked, groups)
    _check_indices("rule", links.rule, rules)
    square = links.possible.ndim == 3 and links.possible.dtype == np.bool_
    _demand(square, "possible", "one table of booleans a rule")
    for name in ("rule", "backward"):
        _demand(getattr(links, name).size == links.linked.size, name, "one a link")


def _check_statement(statement: Statement) -> None:
    branches, rows, groups = statement.branches, statement.rows, statement.groups
    n_pairs = rows.n_rows
    _demand(statement.spaces.n_pairs == n_pairs, "spaces", f"{n_pairs} pairs")
    _demand(branches.ptr.size == n_pairs + 1, "branches", f"those of {n_pairs} pairs")
    _demand(groups.of.size == n_pairs, "groups", f"those of {n_pairs} pairs")
    _demand(statement.links.ptr.size == groups.size + 1, "links", "those of the groups")
    _demand(np.array_equal(statement.pair, branches.pair), "pair", "the branches' own")
    _check_indices("kind", statement.kind, statement.n_kinds)
    _demand(statement.kind.size == branches.size, "kind", "one a branch")
    models = len(statement.names)
    shape = statement.links.possible.shape[1:]
    _demand(shape == (models, models), "possible", f"{models} models")
    reach = np.concatenate([branches.target, branches.near])
    _check_indices("target", reach, rows.n_states)
    keys = rows.row_of_entry() * rows.n_states + rows.successor
    here = branches.pair * rows.n_states + branches.target
    _demand(bool(np.isin(here, keys).all()), "target", "successors that rows list")
    gains = statement.gains.shape == (4, statement.bound.size, branches.size)
    _demand(gains, "gains", "four numbers a channel and branch")
    _demand(0 <= statement.n_costs <= statement.bound.size, "n_costs", "channels")
    _demand(statement.contested.shape == (groups.size,), "contested", "one a group")


def _check_pairs(pairs: Pairs) -> None:
    _check_pointers("state_ptr", pairs.state_ptr, pairs.n_pairs)
    _demand(pairs.state_ptr.size == pairs.n_states + 1, "state_ptr", "one a state")
    owner = np.repeat(np.arange(pairs.n_states), np.diff(pairs.state_ptr))
    _demand(np.array_equal(owner, pairs.pair_state), "pair_state", "in order")
    _check_indices("pair_action", pairs.pair_action, pairs.n_actions)


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "Branches": _check_branches,
    "Groups": _check_groups,
    "Links": _check_links,
    "Pairs": _check_pairs,
    "Rows": _check_rows,
    "Statement": _check_statement,
    "Weighed": lambda _: None,
}
