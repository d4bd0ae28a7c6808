"""What the project promises about itself: imports, layers, lock files, recipes."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import escapade

ROOT = Path(__file__).resolve().parents[1]
LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-extras.lock",
    "requirements-benchmark.lock",
]
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def pins(lock: str) -> dict[str, str]:
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    return {m[1]: m[2] for line in lines if (m := PIN.match(line))}


def modules_after(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


# -- imports -------------------------------------------------------------------------


def test_importing_the_package_imports_no_other_package():
    loaded = modules_after("import escapade") - modules_after("pass")
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert foreign == {"escapade"}
    assert {name for name in loaded if name.startswith("escapade")} == {"escapade"}


def test_help_on_the_command_line_compiles_and_solves_nothing():
    loaded = modules_after(
        "import sys\n"
        "from escapade.cli import main\n"
        "sys.argv = ['escapade', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
    )
    assert "escapade.cli" in loaded
    assert loaded.isdisjoint({"numba", "scipy", "highspy", "gymnasium", "plotly"})


def test_a_model_and_a_formula_need_no_compiler():
    loaded = modules_after("import escapade\nescapade.CMDP, escapade.theory.bounds")
    assert "escapade.model.cmdp" in loaded
    assert loaded.isdisjoint({"numba", "highspy", "gymnasium", "plotly"})


def test_the_extras_are_never_imported_by_the_public_names():
    loaded = modules_after(
        "import escapade\n"
        "for name in escapade.__all__:\n"
        "    if name != 'testing':\n"
        "        getattr(escapade, name)\n"
    )
    assert "escapade.planning.solve" in loaded
    assert loaded.isdisjoint({"hypothesis", "plotly", "torch", "ray", "stormpy"})


@pytest.mark.parametrize("name", escapade.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(escapade)
    assert getattr(escapade, name) is getattr(escapade, name)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'escapade' has no attribute 'slove'"):
        _ = escapade.slove


def test_the_version_has_one_source():
    assert (
        escapade.__version__ == version("escapade") == project()["project"]["version"]
    )


def test_the_citation_and_the_changelog_know_the_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.M) == [escapade.__version__]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## Unreleased$|^## \[?" + escapade.__version__, changelog, re.M)


# -- layers --------------------------------------------------------------------------


def test_every_package_has_its_layer():
    (contract,) = (
        contract
        for contract in project()["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    named = [
        layer.strip(" ()") for line in contract["layers"] for layer in line.split("|")
    ]
    assert contract["exhaustive"]
    assert len(named) == len(set(named))
    source = ROOT / "src" / "escapade"
    found = {path.parent.name for path in source.glob("*/__init__.py")}
    found |= {path.stem for path in source.glob("*.py")} - {"__init__", "__main__"}
    assert found <= set(named)


def test_the_layers_hold():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# -- lock files ----------------------------------------------------------------------


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_pins_and_hashes_and_nothing_else(lock):
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    body = [line for line in lines if not line.startswith("#")]
    odd = [line for line in body if not (PIN.match(line) or HASH.match(line))]
    assert odd == []
    assert not any(re.search(r"://|[\w.-]+/[\w.-]+|@", line) for line in lines)
    for line, following in itertools.pairwise(body):
        if PIN.match(line):
            assert HASH.match(following), line


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_the_locks_agree_with_each_other(lock):
    assert pins("requirements.lock").items() <= pins(lock).items()
    shared = pins("requirements-dev.lock").keys() & pins(lock).keys()
    assert {name: pins("requirements-dev.lock")[name] for name in shared} == {
        name: pins(lock)[name] for name in shared
    }


def test_the_lock_holds_every_requirement():
    def names(requirements: list[str]) -> set[str]:
        return {re.match(r"[\w-]+", line)[0].lower() for line in requirements}

    groups = project()["dependency-groups"]
    run = names(project()["project"]["dependencies"]) | names(groups["build"])
    develop = names(groups["test"]) | names(groups["check"]) | names(groups["docs"])
    assert run <= pins("requirements.lock").keys()
    assert run | develop <= pins("requirements-dev.lock").keys()
    assert names(groups["extras"]) <= pins("requirements-extras.lock").keys()
    assert names(groups["benchmark"]) <= pins("requirements-benchmark.lock").keys()


def test_every_extra_is_locked_somewhere_but_pytorch():
    extras = project()["project"]["optional-dependencies"]
    named = {
        re.match(r"[\w-]+", line)[0] for group in extras.values() for line in group
    }
    locked = pins("requirements-dev.lock").keys() | pins("requirements-extras.lock")
    assert named - locked == {"torch"}


def test_every_mark_is_run_by_one_recipe_or_the_other():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (rest,) = re.findall(r"^REST := (.+)$", makefile, re.M)
    marks = project()["tool"]["pytest"]["ini_options"]["markers"]
    named = {mark.partition(":")[0] for mark in marks}
    assert set(rest.split(" or ")) == named - {"statistical", "compiled"}
    assert '-m "not ($(REST))"' in makefile
    assert '-m "$(REST)"' in makefile


# -- places ----------------------------------------------------------------------------

ENDINGS = {".py", ".md", ".toml", ".yml", ".yaml", ".lock", ".cff", ".json", ".sh"}
NAMES = {"Makefile", "LICENSE", ".gitignore", "run"}
FOLDERS = ("src", "tests", "docs", "scripts", "benchmarks", "examples", ".ci")


def texts():
    """Yield the files that people write."""
    for path in [*ROOT.glob("*"), *(p for f in FOLDERS for p in (ROOT / f).rglob("*"))]:
        if path.is_file() and (path.suffix in ENDINGS or path.name in NAMES):
            yield path


def test_no_file_names_a_place_on_one_machine():
    place = re.compile(
        r"(?<![\w.])/(?:home|root|Users|work|opt|tmp|mnt|srv)/\w"
        r"|file://|--(?:extra-)?index-url|find-links|localhost:\d"
    )
    here = Path(__file__).resolve()
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path != here
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if place.search(line)
    ]
    assert found == []
    assert place.search("see /home/" + "someone")
    assert place.search("file" + "://x")


# -- recipes -------------------------------------------------------------------------


def test_pre_commit_calls_the_recipes_of_the_makefile():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    recipes = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    called = re.findall(r"entry: make (.+)", hooks)
    assert called
    assert {name for line in called for name in line.split()} <= recipes
    assert re.findall(r"repo: (.+)", hooks) == ["local"]


@pytest.fixture
def checkout(tmp_path):
    """Hold what `make` looks at before it sets anything up."""
    for name in ["Makefile", "pyproject.toml", *LOCKS]:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(
        ["make", *words],
        cwd=directory,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_second_demo_sets_up_nothing(checkout):
    first = make(checkout, "--dry-run", "demo").stdout
    assert "--require-hashes -r requirements.lock" in first
    (checkout / ".venv" / "bin").mkdir(parents=True)
    for name in ["bin/python", ".ready-to-run"]:
        (checkout / ".venv" / name).touch()
    second = make(checkout, "--dry-run", "demo").stdout
    lived, said = second.splitlines()
    assert lived.split() == [".venv/bin/escapade", "demo"]
    assert said.startswith("echo")
    assert ". .venv/bin/activate" in said
    later = (checkout / ".venv" / ".ready-to-run").stat().st_mtime + 10
    os.utime(checkout / "requirements.lock", (later, later))
    third = make(checkout, "--dry-run", "demo").stdout
    assert "--require-hashes -r requirements.lock" in third
    assert " -m venv " not in third


def test_python_that_is_too_old_is_named(checkout):
    done = make(checkout, "demo", "PYTHON=false no-such-python")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer; none of these is: false" in done.stderr
    assert not (checkout / ".venv").exists()
