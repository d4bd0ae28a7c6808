"""An agent that answers lines of JSON, so that a controller in any language can ask it.

One object a line comes in, and one goes out for it.  ``do`` says what is wanted:

==============  =====================================  ===============================
``do``          with                                   answers
==============  =====================================  ===============================
``ask``         ``state``                              the decision
``tell``        ``decision`` (its id), ``reward``,     ``steps``, ``promise``,
                ``cost``, ``next_state``               ``breaks``
``forget``      ``decision``, ``next_state``           the same
``tell_cost``   ``decision``, ``cost``                 the same
``override``    ``action``                             the decision, ``beyond``
``freeze``      nothing                                ``steps`` and so on
``thaw``        nothing                                the same
``budget``      ``budget``                             the same
``certificate`` nothing                                bounds, ``gap``, ``safe``
``close``       nothing                                the same as ``tell``, and ends
==============  =====================================  ===============================

The first line that goes out says where the agent stands, with the decision that is
``pending`` if there is one.  What is wrong is answered by an object with ``error`` in
one line; then nothing was changed.  A missing cost is ``null``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import numpy as np

from escapade.agent.e4 import Decision
from escapade.errors import EscapadeError, StorageError, refusal
from escapade.experiment.plant import Plant

__all__ = ["serve"]


def serve(plant: Plant, requests: TextIO, answers: TextIO) -> None:
    """Answer requests until there are no more, or one says ``close``.

    Raises
    ------
    StorageError
        If the journal cannot be written to; that is answered first.
    """
    conversation = _Conversation(plant)
    _say(answers, {**conversation.standing(), "state": plant.state})
    for line in requests:
        if not line.strip():
            continue
        try:
            answer = conversation.answer(_read(line))
        except StorageError as error:
            _say(answers, {"error": str(error)})
            raise
        except EscapadeError as error:
            answer = {"error": str(error)}
        _say(answers, answer)
        if conversation.over:
            return


def _read(line: str) -> Mapping[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refusal("line", "a JSON object", f"no JSON ({error})") from None
    if not isinstance(request, Mapping):
        raise refusal("line", "a JSON object", repr(request))
    return request


def _say(answers: TextIO, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(_plain(answer), allow_nan=False) + "\n")
    answers.flush()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what is infinite or no number becomes null."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class _Conversation:
    """What can be asked of a plant."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self.over = False
        self._verbs: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
            "ask": (("state",), self._ask),
            "tell": (("decision", "reward", "cost", "next_state"), self._tell),
            "forget": (("decision", "next_state"), self._forget),
            "tell_cost": (("decision", "cost"), plant.tell_cost),
            "override": (("action",), self._override),
            "freeze": ((), plant.freeze),
            "thaw": ((), plant.thaw),
            "budget": (("budget",), plant.change_budget),
            "certificate": ((), self._certificate),
            "close": ((), self._close),
        }

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Do what a request wants, and return the answer."""
        verb = request.get("do")
        if not isinstance(verb, str) or verb not in self._verbs:
            raise refusal("do", f"one of {list(self._verbs)}", repr(verb))
        names, act = self._verbs[verb]
        given = {key: value for key, value in request.items() if key != "do"}
        for name in names:
            if name not in given:
                raise refusal(name, f"a value, for {verb!r} needs it", "none")
        for name in given:
            if name not in names:
                raise refusal(name, f"names among {list(names)}", repr(name))
        try:
            found = act(*(given[name] for name in names))
        except (TypeError, ValueError) as error:
            if isinstance(error, EscapadeError):
                raise
            raise refusal(verb, "numbers", str(error)) from None
        return found if found is not None else self.standing()

    def standing(self) -> dict[str, Any]:
        """Return where the agent stands."""
        plant = self._plant
        pending = plant.pending
        return {
            "steps": plant.steps,
            "promise": plant.promise.tolist(),
            "learning": plant.learning,
            "breaks": list(plant.breaks),
            "pending": None if pending is None else _told(pending),
        }

    def _ask(self, state: Any) -> dict[str, Any]:
        return _told(self._plant.ask(state))

    def _open(self, number: Any) -> Decision:
        """Return the decision that is open; the number says which is meant."""
        pending = self._plant.pending
        if pending is None or pending.id != number:
            expected = "none, for none is open" if pending is None else pending.id
            raise refusal("decision", str(expected), number)
        return pending

    def _tell(self, number: Any, reward: Any, cost: Any, next_state: Any) -> None:
        self._plant.tell(
            self._open(number), reward=reward, cost=cost, next_state=next_state
        )

    def _forget(self, number: Any, next_state: Any) -> None:
        self._plant.forget(self._open(number), next_state=next_state)

    def _override(self, action: Any) -> dict[str, Any]:
        made = self._plant.override(action)
        return {
            **_told(made.decision),
            "instead_of": made.instead_of,
            "allowed": made.allowed,
            "beyond": list(made.beyond),
        }

    def _certificate(self) -> dict[str, Any]:
        found = self._plant.certificate()
        return {
            "state": found.state,
            "value_lower": found.value_lower,
            "value_upper": found.value_upper,
            "cost_upper": found.cost_upper.tolist(),
            "upper_bound": found.upper_bound,
            "gap": found.gap,
            "safe": found.safe,
            "message": found.message,
        }

    def _close(self) -> dict[str, Any]:
        self.over = True
        return self.standing()


def _told(decision: Decision) -> dict[str, Any]:
    return {
        "decision": decision.id,
        "state": decision.state,
        "action": decision.action,
        "phase": decision.phase.label,
        "reason": decision.reason,
        "promise": list(decision.promise),
        "reserved": list(decision.reserved),
    }
