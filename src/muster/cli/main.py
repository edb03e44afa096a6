"""The command `muster`: the table of its commands, and how words that no command understands are answered."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

from muster import __version__
from muster.cli.frame import group, perform
from muster.cli.line import Misuse, Option
from muster.cli.terminal.output import OutputOptions, answer, fail_with

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

# Name, where it stands, and what the help says of it; a module is loaded when its command is called.
COMMANDS = (
    ("demo", "demo.command:demo", "Show a real piece of work, and a suite, that need no key."),
    ("ask", "runs.ask:ask", "Ask one question and print the answer."),
    (
        "init",
        "project:init",
        "Make a folder with something to begin with: a small suite, or the verification agents that are shipped.",
    ),
    (
        "validate",
        "suites.validate:validate",
        "Say whether suites and verification agents are valid; exit 2 when one is not.",
    ),
    (
        "lint",
        "suites.validate:lint",
        "Say what is doubtful in suites; exit 1 when anything is, and 2 when a suite is not valid.",
    ),
    (
        "generate",
        "suites.generate:generate",
        "Have test cases written by a model; each is validated, and none is nearly there already.",
    ),
    (
        "plan",
        "suites.plan:plan",
        "Say how many calls a run would make, of how many tokens, and what that could cost.",
    ),
    ("run", "suites.run:run", "Run suites and print how the cases ended."),
    ("runs", "runs.command:app", "Everything about runs: see them, go on with them, move them."),
    ("batch", "batches.command:app", "Everything about batches: see, fetch, cancel and reconcile them."),
    (
        "report",
        "suites.report:report",
        "Report a suite run or a verification from the store: for people, for CI, for a pull request. "
        "Not a gate: it exits 0.",
    ),
    (
        "compare",
        "suites.compare:compare",
        "Compare two suite runs, paired by case and epoch. Exits 1 when B is worse or the evidence is not enough.",
    ),
    ("baseline", "suites.compare:app", "Names for runs that others are compared with."),
    (
        "verify",
        "verify.command:app",
        "Have code looked at by agents, in waves: the next one begins only when everybody in this one has passed. "
        "Choose the files in one way: paths, --changed [REF], --staged or --pending. "
        "Exit code 0 means that everything was checked and has passed.",
    ),
    (
        "review",
        "suites.review:review",
        "Say whether a verdict was right, or see what was said and how far it agrees with the judge.",
    ),
    ("evidence", "suites.evidence:app", "Signed evidence of suite runs: make it, check it, score it again."),
    (
        "worker",
        "servers:worker",
        "Drive submitted runs, also those whose driver died; exit code 1 if one of them exceeded a budget.",
    ),
    ("sim", "servers:sim", "Serve the rehearsal; the first line is JSON with addresses."),
    ("schema", "project:schema", "Print a JSON Schema for editors, made from what this version reads."),
    ("store", "project:app", "Look at the store, and give its free space back."),
    ("doctor", "project:doctor", "Say what is fine and what is not; exit 3 when broken."),
)

for _name, _place, _about in COMMANDS:
    app.defer(_name, f"muster.cli.{_place}", _about)


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
