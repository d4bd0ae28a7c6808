"""A sweep on a cluster of two machines, one of which goes away half-way.

The cluster is Ray's own for tests: two of its nodes on loopback, each with one core.
"""

from __future__ import annotations

import socket
import sys

import pytest

from escapade.errors import InvalidInputError, MissingExtraError
from escapade.experiment import SweepSpec, sweep
from escapade.experiment.sweeps.on_ray import OnRay
from escapade.experiment.versions import versions

pytestmark = pytest.mark.ray

HEAD, OTHER = "127.0.0.2", "127.0.0.3"  # Ray turns 127.0.0.1 into an outer address


@pytest.fixture
def spec():
    return SweepSpec(
        worlds=[{"name": "wall-cycle", "parameters": {"size": 3}}],
        settings={"known_after": 4},
        seeds=3,
        steps=1_000_000,
    )


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    found = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "node_ip_address": HEAD,
            "include_dashboard": False,
        },
    )
    found.two = found.add_node(num_cpus=1, node_ip_address=OTHER)
    yield found
    found.shutdown()


@pytest.mark.filterwarnings("default")  # Ray's own
def test_a_machine_that_goes_away_takes_nothing_along(tmp_path, cluster, spec):
    alone = sweep(spec, tmp_path / "alone", workers=2)
    place = tmp_path / "shared"
    beats = [place / "runs" / run.name / ".beat" for run in spec.runs]
    removed = []

    def remove(standing):
        if not removed and sum(beat.exists() for beat in beats) == 2:
            removed.append(standing.ended)
            cluster.remove_node(cluster.two, allow_graceful=False)

    found = sweep(spec, place, engine="ray", address=cluster.address, watch=remove)
    assert removed
    assert found.failures() == {}
    assert found.results_path.read_bytes() == alone.results_path.read_bytes()
    died = [line for line in found.log() if line["what"] == "died"]
    assert len(died) == 1
    assert "NodeDiedError" in died[0]["death"]
    # it went on elsewhere from what stood in its journal, the others were never stopped
    for run in spec.runs:
        begun = [opening["step"] for opening in found.runs[run].openings()]
        if run.name == died[0]["run"]:
            assert begun == [0, begun[1]]
            assert 0 < begun[1] <= run.steps
        else:
            assert begun == [0]


@pytest.mark.filterwarnings("default")
def test_without_an_address_ray_is_started_here(tmp_path):
    spec = SweepSpec(worlds=["three-state-loop"], seeds=1, steps=100)
    found = sweep(spec, tmp_path / "sweep", engine="ray", workers=1)
    assert found.rows()[0]["steps"] == 100
    import ray

    assert not ray.is_initialized()
    assert {p.name for p in found.directory.iterdir()} == {
        ".lock",
        "log.jsonl",
        "results.csv",
        "runs",
        "sweep.toml",
    }


def test_an_address_where_nobody_is_is_refused_at_once(tmp_path):
    spec = SweepSpec(worlds=["three-state-loop"], seeds=1, steps=100)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidInputError, match="address: expected that of a Ray"):
            sweep(spec, tmp_path / "sweep", engine="ray", address=address)


@pytest.fixture
def hands(tmp_path):
    return OnRay(tmp_path / "runs", tmp_path / ".stop", workers=None, address=None)


def test_a_machine_that_does_not_see_the_directory_is_named(hands, tmp_path):
    said = "directory: expected one that every machine of the cluster sees"
    for seen in (None, "of another"):
        answer = {"seen": seen, "versions": versions()}
        with pytest.raises(InvalidInputError, match=said) as caught:
            hands._check("far", answer, "token")
        assert str(caught.value).endswith(f"{tmp_path}, which far does not see")
    hands._check("near", {"seen": "token", "versions": versions()}, "token")


def test_a_machine_with_other_versions_is_named(hands):
    other = {**versions(), "numpy": "1.0"}
    with pytest.raises(InvalidInputError, match=r"cluster: .* found 1\.0 on far"):
        hands._check("far", {"seen": "token", "versions": other}, "token")


def test_without_ray_the_line_that_installs_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    spec = SweepSpec(worlds=["three-state-loop"], seeds=1, steps=100)
    with pytest.raises(MissingExtraError, match=r"escapade\[ray\]"):
        sweep(spec, tmp_path / "sweep", engine="ray")
