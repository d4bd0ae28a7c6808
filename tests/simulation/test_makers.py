"""What is refused in the place of a function that makes agents."""

from __future__ import annotations

import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.experiment import compare, sweep

WRONG = [
    (ep.E4, "found the class E4"),
    (lambda k: None, r"found <lambda>\(k\)"),
    (7, "found a int"),
]


@pytest.mark.parametrize(("make", "found"), WRONG)
def test_an_audit_names_the_function_that_it_needs(make, found):
    said = rf"make_agent: expected a function of \(knowledge, seed\).*{found}"
    with pytest.raises(InvalidInputError, match=said):
        ep.audit(make, ep.environments.queue(), lifetimes=2, steps=10)


@pytest.mark.parametrize(("make", "found"), WRONG)
def test_a_comparison_names_the_agent(make, found):
    said = rf"agents\['x'\]: expected a function of \(knowledge, seed\).*{found}"
    with pytest.raises(InvalidInputError, match=said):
        compare(ep.environments.queue(), steps=50, agents={"x": make})


def test_names_and_files_are_not_what_they_stand_for(tmp_path):
    with pytest.raises(InvalidInputError, match=r"world: expected a World.*'queue'"):
        compare("queue", steps=50)
    with pytest.raises(InvalidInputError, match="agents: expected a dict of names"):
        compare(ep.environments.queue(), steps=50, agents=[ep.E4])
    with pytest.raises(InvalidInputError, match=r"spec: expected a SweepSpec, as load"):
        sweep("mine.toml", tmp_path / "x")
    assert not (tmp_path / "x").exists()
