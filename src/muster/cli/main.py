"""The command `muster`: puts the groups together, and answers usage errors like all others."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

from muster import __version__
from muster.cli import project, servers
from muster.cli.batches import command as batch
from muster.cli.demo import command as demo
from muster.cli.frame import group, perform
from muster.cli.line import Misuse, Option
from muster.cli.runs import ask
from muster.cli.runs import command as runs
from muster.cli.suites import compare, evidence, generate, plan, report, review, validate
from muster.cli.suites.run import register_run
from muster.cli.terminal.output import OutputOptions, answer, fail_with
from muster.cli.verify import command as verify

ABOUT = """Runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget.

RUN is an id, the beginning of one, a name (the newest with it), or `last`."""

GARBAGE = 10_000  # new values before circles among them are looked for
TURN = 0.0002  # seconds for which a thread may keep the interpreter while another wants it


def about_itself(
    manner: OutputOptions, version: Annotated[bool, Option("--version", help="Say the version.")] = False
) -> int | None:
    """Take the options that are no command's."""
    if not version:
        return None
    answer(manner, {"version": __version__}, lambda console: console.print(f"muster {__version__}", highlight=False))
    return 0


app = group(ABOUT, about_itself)

demo.register(app)
ask.register(app)
project.register_init(app)
validate.register_validate(app)
validate.register_lint(app)
generate.register(app)
plan.register(app)
register_run(app)
app.add("runs", runs.app)
app.add("batch", batch.app)
report.register(app)
compare.register_compare(app)
app.add("baseline", compare.app)
app.add("verify", verify.app)
review.register(app)
app.add("evidence", evidence.app)
servers.register_worker(app)
servers.register_sim(app)
project.register_schema(app)
app.add("store", project.app)
project.register_doctor(app)


def set_up() -> None:
    """Set the interpreter of this process up for runs."""
    # A run makes many values and few of them in circles: looking for those all the time cost a thirtieth of its speed.
    gc.set_threshold(GARBAGE)
    # The store's writer gives the interpreter up for every statement; to wait 5 ms to have it back took longer than
    # the statement.
    sys.setswitchinterval(TURN)


def main() -> None:
    """Run the command of this process and exit."""
    set_up()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer must never be lost to an encoding
    code = run(sys.argv[1:])
    # CPython exits by SIGINT, whatever sys.exit says, once an interrupt came out of evaluated source text, such as that
    # of a dataclass being made while modules are loaded; evaluating any other text clears that mark.
    exec("")  # noqa: S102
    gc.freeze()  # all goes with the process: looking for circles once more at its end took a tenth of a command's time
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
        return perform(app, arguments)
    except Misuse as misuse:
        return _misused(arguments, misuse)


def _misused(arguments: Sequence[str], misuse: Misuse) -> int:
    before = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    manner = OutputOptions(command=misuse.path.partition(" ")[2], json="--json" in before)
    return fail_with(manner, {"code": "usage", "message": misuse.message, "suggestions": [f"{misuse.path} --help"]}, 2)
