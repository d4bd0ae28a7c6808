"""What is printed: JSON that every parser reads, lines without control codes."""

from __future__ import annotations

import io
import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escapade.cli import output


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def printed_object(answer):
    stream, sys.stdout = sys.stdout, io.StringIO()
    try:
        output.print_json(answer)
        text = sys.stdout.getvalue()
    finally:
        sys.stdout = stream
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text, parse_constant=pytest.fail)


@given(st.floats())
def test_every_number_is_json_and_comes_back(number):
    for wrapped in (number, np.float64(number), np.array([number])):
        found = printed_object({"x": wrapped})["x"]
        found = found[0] if isinstance(found, list) else found
        if math.isnan(number):
            assert found is None
        else:
            assert float(found) == number
            assert isinstance(found, str) == math.isinf(number)


@given(st.text())
def test_every_name_is_json_and_comes_back(name):
    assert printed_object({name: [name]}) == {name: [name]}


def test_numpy_and_nesting_become_plain():
    answer = {
        "array": np.array([[1.5, np.inf], [-np.inf, np.nan]]),
        "count": np.int64(3),
        "large": 10**40,
        "flag": np.bool_(True),
        "pair": ("a", None),
        7: {"inner": np.float32(0.5)},
    }
    assert printed_object(answer) == {
        "array": [[1.5, "Infinity"], ["-Infinity", None]],
        "count": 3,
        "large": 10**40,
        "flag": True,
        "pair": ["a", None],
        "7": {"inner": 0.5},
    }


@given(st.text())
def test_a_line_is_one_line_without_control_codes(text):
    line = output.one_line(text)
    assert line.isprintable()
    assert len(line.splitlines()) <= 1
    if text.isprintable():
        assert line == text


def test_what_the_stream_cannot_encode_is_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert not output.takes("γ")
    assert output.takes("gamma")
    output.say("γ")
    sys.stdout.flush()
    assert raw.getvalue() == b"\\u03b3\n"


def test_a_table_is_plain_lines_in_a_pipe(capsys):
    output.show_table(
        ["name", "n"], [["a\x1b[31m", "5"], ["long name", "10"]], numbers=["n"]
    )
    assert capsys.readouterr().out == ("name        n\na\\x1b[31m   5\nlong name  10\n")


def test_a_table_is_drawn_on_a_terminal_and_names_are_no_markup(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.show_table(["name", "n"], [["[red]x", "5"]], numbers=["n"])
    assert "[red]x" in terminal.getvalue()
    assert "─" in terminal.getvalue()


def test_facts_stand_below_each_other(capsys):
    output.show_facts({"a": "1", "long": "2"})
    assert capsys.readouterr().out == "a     1\nlong  2\n"


def test_counts_have_their_noun():
    assert output.plural(1, "state") == "1 state"
    assert output.plural(0, "state") == "0 states"
    assert output.amount(0.1 + 0.2) == "0.3"


@given(st.text(alphabet="ab -", min_size=1, max_size=60), st.integers(8, 30))
def test_lines_are_wrapped_between_words(line, width):
    found = output.wrapped(line, width)
    assert found.split() == line.split()
    widest = max(map(len, line.split()), default=0)
    assert all(len(part) <= max(width, widest) for part in found.split("\n"))
    if len(line) <= width:
        assert found == line


def test_a_narrow_terminal_wraps_facts_beside_their_names(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "16")
    output.show_facts({"name": "one two three four", "b": "c"})
    output.say("a line that is too wide")
    assert terminal.getvalue().splitlines() == [
        "name  one two",
        "      three four",
        "b     c",
        "a line that is",
        "too wide",
    ]
