"""``escapade run ENV`` and ``escapade resume DIR``: a lifetime, written down."""

from __future__ import annotations

import shlex
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escapade.cli.kept import run_in
from escapade.cli.options import Json, one_of, worlds
from escapade.cli.output import complain, print_json, say, show_facts
from escapade.errors import AssumptionError, refusal

if TYPE_CHECKING:
    from escapade.experiment import Run, RunSpec

__all__ = [
    "INTERRUPTED",
    "live_and_tell",
    "pairs",
    "resume",
    "run",
    "tell_end",
]

INTERRUPTED = 130
"""The exit code of a run that was set aside by Ctrl-C, as shells have it."""

_FILES = (".toml", ".json", ".npz", ".csv")

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of a run.")
]


def run(
    env: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]",
            help="Name of a world; `escapade envs` lists them.  Not with --spec.",
            autocompletion=worlds,
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps to live at most.  [default: 50000]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of agent and world.  [default: 0]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of the run.  [default: runs/<env>-<hash>-<seed>]",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="`certified` ends the run once it is within epsilon of the best.  "
            "[default: steps]",
            autocompletion=one_of("steps", "certified"),
        ),
    ] = None,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable", help="Wait for the disk before every step, as beside a plant."
        ),
    ] = False,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-p", metavar="KEY=VALUE", help="A parameter of the world."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            "-s",
            metavar="KEY=VALUE",
            help="A setting of the agent, such as epsilon=0.5.",
        ),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read all of this from a TOML file."),
    ] = None,
    json: Json = False,
) -> int:
    """Live a lifetime in a world, and write every decision down.

    The agent is told what the world says may be known, and nothing else.  Ends with 0
    if the steps were lived within promise, certified or not, and with 1 if the budget
    cannot be promised or an assumption broke.  Ctrl-C sets the run aside.
    """
    from escapade.experiment import Run, RunStore

    what = _specification(
        spec,
        {
            "world": env,
            "steps": steps,
            "seed": seed,
            "until": until,
            "durable": durable or None,
        },
        parameters=parameter or [],
        settings=setting or [],
    )
    place = out or RunStore().path_of(what)
    _refuse_to_replace(place, what)
    return live_and_tell(Run.create(place, what), json=json, new=True)


def _refuse_to_replace(place: Path, what: RunSpec) -> None:
    """Refuse a directory in which a run was begun; say what can be done with it."""
    from escapade.experiment import Run

    if not (place / "spec.toml").exists() or Run(place).status == "new":
        return  # nothing was lived there
    there = Run(place)
    same = (there.digest, there.spec.seed) == (what.digest, what.seed)
    if there.status == "finished":
        which = "this run, which is finished" if same else "another, which is finished"
        advice = f"look at it by: escapade report {place}"
    else:
        which = "this run, begun before" if same else "another, begun before"
        advice = f"go on with it by: escapade resume {place}"
    raise refusal(
        "--out", "a directory that is empty or new", f"{which}, in {place}; {advice}"
    )


def resume(directory: Directory, json: Json = False) -> int:
    """Go on with a run that was interrupted, by whatever.

    The run goes on as if it had never been interrupted, decision by decision.  A run
    that is finished is left alone.
    """
    found = run_in(directory, simulated=True)
    summary = found.summary
    if summary is not None and not json:
        say(f"{directory}: finished already")
    return live_and_tell(found, json=json)


def live_and_tell(
    found: Run, *, json: bool, title: str | None = None, new: bool = False
) -> int:
    """Live a run to its end, show how it gets on, and tell how it ended.

    A new run whose budget cannot be promised leaves no directory behind.
    """
    from escapade.cli.screen import Screen
    from escapade.experiment import Interruption, live
    from escapade.report import write_page

    spec, place = found.spec, found.directory
    sooner = spec.until == "certified"
    screen = Screen(title or spec.name, spec.steps, run=found, at_most=sooner)
    page = None
    try:
        with Interruption().listening() as stop, nullcontext() if json else screen:
            shown = [] if json else [screen]
            summary = live(found, callbacks=shown, stop=stop)
            if summary is not None and summary["steps"]:
                screen.working("the report is written")
                page = write_page(found)
    except AssumptionError as error:
        if new:
            found.withdraw()
        said = str(error).replace("escapade.preflight(knowledge)", _check_of(spec))
        complain(said)
        if json:
            kept = {"directory": str(place)} if place.exists() else {}
            print_json({**kept, "error": said})
        return 1
    if summary is None:
        if json:
            print_json({"directory": str(place), "steps": found.n_steps})
        complain(
            f"set aside after {found.n_steps:,} steps; go on with: "
            f"escapade resume {place}"
        )
        return INTERRUPTED
    if json:
        told = {"directory": str(place), **summary}
        print_json(told if page is None else {**told, "report": str(page)})
    else:
        tell_end(found, summary, page)
    return 0 if summary["promise_kept"] else 1


def _check_of(spec: RunSpec) -> str:
    """Return the command that examines the world of a run before it is lived in."""
    from escapade.environments.registry import parameters
    from escapade.experiment.toml_text import toml_value

    usual = parameters(spec.world)
    changed = [
        shlex.quote(f"{key}={toml_value(value)}")
        for key, value in spec.parameters.items()
        if value != usual[key]
    ]
    return (
        " ".join([f"`escapade check {spec.world}", *(f"-p {p}" for p in changed)]) + "`"
    )


def tell_end(found: Run, summary: dict[str, Any], page: Path | None) -> None:
    """Print how a run ended, and where the page that shows it is, if there is one."""
    from escapade.cli.output import amount

    certificate, realised = summary["certificate"], summary["realised"]
    own = summary.get("own_units")
    earned = summary if own is None else own  # as the problem itself counts
    bounds = certificate if own is None else own
    phases = ", ".join(f"{k} {v:,}" for k, v in summary["phases"].items() if v)
    budget = ", ".join(map(amount, summary["budget"]))
    show_facts(
        {
            "steps": f"{summary['steps']:,} ({summary['stopped']})",
            "phases": phases,
            "known states": f"{summary['known_states']} of {summary['states']}",
            "reward a step": f"{earned['reward_per_step']:.4f}",
            "promise": (
                f"at most {budget}; "
                f"{'kept' if summary['promise_kept'] else 'NOT kept'} at every step"
            ),
            "realised": (
                f"at most {', '.join(map(amount, realised['largest_cost_to_go']))} "
                f"from a step on; over budget from {realised['steps_over_budget']:,}"
            ),
            "certificate": (
                f"value in [{amount(bounds['value_lower'])}, "
                f"{amount(bounds['value_upper'])}], cost at most "
                f"{', '.join(map(amount, certificate['cost_upper']))}, nobody earns "
                f"more than {amount(bounds['upper_bound'])}"
            ),
            **({} if own is None else {"in units where": own["map"]}),
            "the bound": summary["assumption"],
            "kept in": str(found.directory),
            **({} if page is None else {"the report": str(page)}),
        }
    )
    say()
    say(f"{summary['verdict']}.")


def _specification(
    file: Path | None,
    given: dict[str, Any],
    *,
    parameters: list[str],
    settings: list[str],
) -> RunSpec:
    from escapade.experiment import RunSpec, load_spec

    said = {key: value for key, value in given.items() if value is not None}
    if file is not None:
        if said or parameters or settings:
            other = next(iter(said), "parameter")
            raise refusal("--spec", "no other option beside --out", other)
        return load_spec(file)
    if "world" not in said:
        raise refusal("ENV", "the name of a world, or --spec", "neither")
    if Path(said["world"]).suffix in _FILES:
        raise refusal(
            "ENV",
            "the name of a world",
            f"the file {said['world']}; what a run is goes by --spec, and beside a "
            f"plant of your own the agent lives by escapade.open or `escapade serve`",
        )
    return RunSpec(
        **{"steps": 50_000, **said},
        parameters=pairs("--set", parameters),
        settings=pairs("--setting", settings),
    )


def pairs(option: str, texts: list[str]) -> dict[str, Any]:
    """Return ``key=value`` texts as a table; values are read as TOML, or are words."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise refusal(option, "KEY=VALUE", repr(text))
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value
    return found
