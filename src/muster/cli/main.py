"""The command `muster`: puts the groups together, and answers usage errors like all others."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from muster import __version__
from muster.cli import (
    ask,
    baseline,
    batch,
    compare,
    demo,
    doctor,
    evidence,
    generate,
    init,
    lint,
    plan,
    report,
    review,
    runs,
    sim,
    store,
    validate,
    worker,
)
from muster.cli.frame import HomeOption, JsonOption, QuietOption, help_without_command, manner_of
from muster.cli.manner import Manner
from muster.cli.run import register as register_run
from muster.cli.speech import answer, fail_with

ABOUT = """Runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget.

RUN is an id, the beginning of one, a name (the newest with it), or `last`."""

GARBAGE = 10_000  # new values before circles among them are looked for

app = typer.Typer(name="muster", rich_markup_mode=None, add_completion=False)


@app.callback(invoke_without_command=True, help=ABOUT)
def root(
    context: typer.Context,
    json: JsonOption = False,
    quiet: QuietOption = False,
    home: HomeOption = None,
    version: Annotated[bool, typer.Option("--version", help="Say the version.")] = False,
) -> None:
    """Take the options that stand before the command."""
    context.obj = manner = manner_of(context, json=json, quiet=quiet, home=home)
    if version:
        answer(
            manner, {"version": __version__}, lambda console: console.print(f"muster {__version__}", highlight=False)
        )
        raise typer.Exit
    help_without_command(context)


demo.register(app)
ask.register(app)
init.register(app)
validate.register(app)
lint.register(app)
generate.register(app)
plan.register(app)
register_run(app)
app.add_typer(runs.app, name="runs")
app.add_typer(batch.app, name="batch")
report.register(app)
compare.register(app)
app.add_typer(baseline.app, name="baseline")
review.register(app)
app.add_typer(evidence.app, name="evidence")
worker.register(app)
sim.register(app)
app.add_typer(store.app, name="store")
doctor.register(app)


def main() -> None:
    """Run the command of this process and exit."""
    # A run makes many values and few of them in circles: looking for those all the time cost a thirtieth of its speed.
    gc.set_threshold(GARBAGE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer must never be lost to an encoding
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: the answer cannot be written: {error.strerror}\n")
            code = code or 4
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    try:
        found = typer.main.get_command(app).main(args=list(arguments), prog_name="muster", standalone_mode=False)
    except typer.TyperException as error:
        return _misused(arguments, error)
    return found if isinstance(found, int) else 0


def _misused(arguments: Sequence[str], error: Any) -> int:
    context = getattr(error, "ctx", None)
    path = "muster" if context is None else context.command_path
    before = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    manner = Manner(command=path.partition(" ")[2], json="--json" in before)
    told = {"code": "usage", "message": error.format_message(), "suggestions": [f"{path} --help"]}
    return fail_with(manner, told, 2)
