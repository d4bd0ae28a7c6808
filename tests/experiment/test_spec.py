"""Specifications: data that round-trips, a hash that names, errors with a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import escapade as ep
from escapade.errors import InvalidFileError, InvalidInputError
from escapade.experiment import RunSpec, load_spec


def spec(**changes):
    return RunSpec(
        **{"world": "wall-cycle", "parameters": {"size": 4}, "steps": 100, **changes}
    )


@given(
    steps=st.integers(1, 2**53),
    seed=st.integers(0, 2**53),
    until=st.sampled_from(["steps", "certified"]),
    durable=st.booleans(),
    epsilon=st.floats(1e-6, 1e6),
    size=st.integers(2, 9),
)
def test_a_specification_round_trips(steps, seed, until, durable, epsilon, size):
    one = RunSpec(
        world="toll-cycle",
        steps=steps,
        seed=seed,
        until=until,
        durable=durable,
        parameters={"size": size},
        settings={"epsilon": epsilon},
    )
    again = RunSpec.from_toml(one.to_toml())
    assert again == one
    assert again.to_toml() == one.to_toml()
    assert again.name == one.name


@pytest.mark.parametrize("world", ep.environments.names())
def test_every_world_can_be_specified(world):
    one = RunSpec(world=world, steps=1)
    assert RunSpec.from_toml(one.to_toml()) == one
    assert one.make_world().name == world


def test_the_hash_follows_what_decisions_hang_on_and_nothing_else():
    one = spec()
    assert spec(seed=3).digest == one.digest
    assert spec(durable=True).digest == one.digest
    assert spec(seed=3).name == one.name.removesuffix("0") + "3"
    for change in (
        {"steps": 101},
        {"until": "certified"},
        {"parameters": {"size": 5}},
        {"settings": {"epsilon": 2.0}},
    ):
        assert spec(**change).digest != one.digest
    # what is not said is the default, and one number is written in one way
    assert spec(parameters={"size": 4, "budget": 10}).digest == one.digest
    assert spec(settings={"epsilon": 1}).digest == one.digest


def test_a_specification_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        spec().steps = 3


def test_the_settings_carry_the_seed():
    settings = spec(seed=9, settings={"known_after": 7}).make_settings()
    assert (settings.seed, settings.known_after) == (9, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('world = "wall-cycl"\nsteps = 3', "line 1: world: expected a world among"),
        ('world = "wall-cycle"\nsteps = 0', "line 2: steps: expected greater than"),
        ('world = "wall-cycle"\nsteps = true', "line 2: steps: expected a valid int"),
        ('world = "wall-cycle"\nstep = 3', "line 2: step: expected a name among"),
        ('world = "wall-cycle"', "steps: expected a value, found none"),
        ("world = ", "expected TOML"),
        (
            'world = "wall-cycle"\nsteps = 9\n\n[settings]\nepsilon = "a"',
            "line 5: settings.epsilon: expected a valid number",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\n\n[settings]\nepsilon = -1',
            "line 5: settings.epsilon: expected a number in (0, inf), found -1",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\n\n[settings]\nepsilo = 1',
            "line 5: settings.epsilo: expected a name among",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\n[settings]\nmode = "papr"',
            "line 4: settings.mode: expected 'ledger' or 'paper', found 'papr'",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\n[parameters]\nsiz = 3',
            "line 4: parameters.siz: expected a name among",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\n[parameters]\nsize = [[1]]',
            "line 4: parameters.size: expected numbers, a word or a truth",
        ),
        (
            'world = "wall-cycle"\nsteps = 9\nsettings = 3',
            "line 3: settings: expected a table, found 3",
        ),
        ('format = 2\nworld = "wall-cycle"\nsteps = 9', "line 1: format: expected 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "spec.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidFileError) as caught:
        load_spec(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)


def test_a_world_that_cannot_be_made_is_refused():
    with pytest.raises(InvalidInputError, match=r"parameters\.size: expected"):
        spec(parameters={"size": 1}).make_world()


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidFileError, match="cannot be read"):
        load_spec(tmp_path / "none.toml")
