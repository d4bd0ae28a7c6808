"""The commands by name, and how each of them ends.

Typer's own messages fill a box of several lines.  Here whatever is wrong with the input
is one line on standard error, whether Typer finds it on the command line or the library
in a file; with ``--json`` it is an object with the key ``error`` too.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from escapade.cli import (
    audit,
    bounds,
    check,
    compare,
    demo,
    envs,
    export,
    report,
    run,
    serve,
    solve,
    sweep,
    verify,
)
from escapade.cli.output import complain, one_line, print_json
from escapade.errors import (
    EscapadeError,
    InvalidInputError,
    MissingExtraError,
    StorageError,
)

__all__ = ["app", "main"]

_WRONG_INPUT, _BROKEN = 2, 3


class _Commands(TyperGroup):
    """The group of all commands, which ends with a code and at most one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code, or return it."""
        code = self._run(
            list(sys.argv[1:] if args is None else args),
            prog_name=prog_name or "escapade",
            complete_var=complete_var,
            windows_expand_args=windows_expand_args,
            **extra,
        )
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(self, words: list[str], **how: Any) -> int:
        try:
            code = super().main(words, standalone_mode=False, **how)
            return code if isinstance(code, int) else 0
        except typer.TyperException as error:
            ending, message = _WRONG_INPUT, _in_our_words(error)
            complain(message)
        except (InvalidInputError, MissingExtraError, StorageError) as error:
            ending, message = _WRONG_INPUT, str(error)
            complain(message)
        except MemoryError as error:
            ending, message = _WRONG_INPUT, f"memory: expected sizes that fit: {error}"
            complain(message)
        except EscapadeError as error:  # a solver broke down: that is no answer
            ending, message = _BROKEN, str(error)
            complain(message)
        except Exception as error:  # noqa: BLE001  our fault; 1 would say "no"
            ending, message = _BROKEN, f"{type(error).__name__}: {error}"
            traceback.print_exc()
        if "--json" in words:
            print_json({"error": one_line(message)})
        return ending


def _in_our_words(error: typer.TyperException) -> str:
    """Return what was wrong with how a command was called, and where help is."""
    said = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "escapade"
    return f"{said[:1].lower()}{said[1:]}; see {command} --help"


app = typer.Typer(
    cls=_Commands,
    name="escapade",
    help=(
        "Plan for constrained Markov decision processes: the best policy whose "
        "expected discounted cost keeps a budget."
    ),
    epilog=(
        "Exit codes: 0 done, 1 the answer is no, 2 the input was wrong, "
        "3 Escapade broke down."
    ),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.command("serve")(serve.serve)
app.command("export")(export.export)
app.command("audit")(audit.audit)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("solve")(solve.solve)
app.command("bounds")(bounds.bounds)
app.command("envs")(envs.envs)


def _print_version(wanted: bool) -> None:
    if wanted:
        import escapade

        typer.echo(f"escapade {escapade.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The words after ``escapade``; those of this process when not given.
    """
    if arguments is None and hasattr(signal, "SIGPIPE"):
        # `escapade ... | head` ends when its reader does, as other commands do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    code: int = typer.main.get_command(app).main(
        None if arguments is None else list(arguments),
        prog_name="escapade",
        standalone_mode=False,
    )
    return code
