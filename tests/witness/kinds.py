"""Makes stores with runs of every kind of work: `python -m tests.witness.kinds orders`, from the root.

That in `witness-kinds` is of the last day before runs stored the version of their default limits, that in
`witness-orders` of the last day before kinds of work were declared once. Each kind of work is there completed, cut
short by a kill, failed, and where it can be, waiting; `tests/witness/test_kinds.py` continues and replays all of them.
"""

import os
import shutil
import sys
from pathlib import Path

from tests.witness.home import STATE, Home
from tests.witness.make import LONG, finish, free_port
from tests.witness.opening import open_witness

DATA = Path(__file__).parent.parent / "data"
KINDS = DATA / "witness-kinds"
STORES = {"kinds": KINDS, "orders": DATA / "witness-orders"}  # of the same project
PLACE = Path("/tmp/witness-kinds/project")  # where it was made
LEFT = ("--dispatch", "batch", "--detach", "--linger", "0")
ONE = ("--concurrency", "1")
TABLE = ("--agent", "claude", "--counterpart", "gpt", "--judge", "gpt", "--confirm-judge", "thorough")
BATTLE = ("battle", *TABLE, "--goal", "A table is booked", "--message-limit", "4")
SCALE = ("scale", *TABLE, "--goals", "goals.yaml", "--runs", "10", *ONE, "--message-limit", "4")
SUITE = ("run", "desk", "--agent", "claude", "--judge")
COUNCIL = ("council", "Should the cache be shared?", "--policy", "council.yaml", *ONE)
CHAIN = ("chain", "run", "chain.yaml", *ONE, "--input")
TRIAGE = ("runs", "start", "triage", *ONE, "--input")
TICKETS = '{"agent": "claude", "tickets": ["lamp", "chair", "%s"]}'
GENERATE = ("generate", "--agent", "thorough", "--extend", "desk", "--count", "1", "--dry-run")

# By the name of the run: the exit code of the command, the command, and where it is killed.
COMPLETED: dict[str, tuple[int, tuple[str, ...]]] = {
    "asked": (0, ("ask", "claude", "How long can I return it?")),
    "asked-for-more": (0, ("ask", "claude", "How long can I return a desk?", "--max-tokens", "700")),
    "judged": (1, (*SUITE, "gpt", *ONE)),
    "judged-at-length": (1, (*SUITE, "thorough", "--max-tokens", "400", *ONE)),
    "judged-by-council": (1, (*SUITE, "council:council.yaml", *ONE)),
    "looked": (0, ("verify", "src", *ONE)),
    "noted": (0, (*CHAIN, "topic=bees")),
    "deliberated": (1, COUNCIL),
    "fought": (0, BATTLE),
    "scaled": (0, SCALE),
    "labels": (0, (*TRIAGE, TICKETS % "desk")),
}
CUT: dict[str, tuple[str, tuple[str, ...]]] = {
    "cut-asked": ("call.settled:1", ("ask", "claude", "How long can I return it, please?")),
    "cut-judged": ("call.opened:4", (*SUITE, "gpt", *ONE)),
    "cut-judged-at-length": ("call.opened:4", (*SUITE, "thorough", *ONE)),
    "cut-judged-by-council": ("call.opened:5", (*SUITE, "council:council.yaml", *ONE)),
    "cut-looked": ("call.opened:3", ("verify", "src", *ONE)),
    "cut-noted": ("call.opened:3", (*CHAIN, "topic=wasps")),
    "cut-deliberated": ("call.opened:4", COUNCIL),
    "cut-fought": ("call.opened:4", BATTLE),
    "cut-scaled": ("call.opened:56", SCALE),
    "cut-revised": ("call.settled:61", SCALE),
    "cut-labels": ("call.opened:3", (*TRIAGE, TICKETS % "shelf")),
}
FAILED: dict[str, tuple[int, tuple[str, ...]]] = {
    "failed-asked": (1, ("ask", "claude", "This is unlucky.")),
    "failed-judged": (1, (*SUITE, "gpt", *ONE, "--budget", "0.0014")),
    "failed-looked": (1, ("verify", "src", *ONE, "--budget", "0.0200")),
    "failed-noted": (1, (*CHAIN, "topic=hapless bees")),
    "failed-deliberated": (1, (*COUNCIL, "--budget", "0.0014")),
    "failed-fought": (1, (*BATTLE, "--budget", "0.0110")),
    "failed-labels": (1, (*TRIAGE, TICKETS % "unlucky shelf")),
}
WAITING: dict[str, tuple[str, ...]] = {
    "waiting-asked": ("ask", "gpt", "Hello later", *LEFT),
    "waiting-judged": (*SUITE, "gpt", *LEFT),
    "waiting-looked": ("verify", "src", "--batch", "--detach", "--linger", "0"),
    "waiting-noted": (*CHAIN, "topic=ants", *LEFT),
    "waiting-deliberated": (*COUNCIL, *LEFT),
    "waiting-fought": (*BATTLE, *LEFT),
    "waiting-scaled": (*SCALE, *LEFT),
}


def build(home: Home) -> None:
    """Make runs of every kind."""
    home.make_repository()
    port = free_port()
    with home.rehearse(port=port, **at_rest()):
        for name, (code, words) in COMPLETED.items():
            do(home, code, *words, "--name", name)
        for name, (point, words) in CUT.items():
            do(home, -9, *words, "--name", name, MUSTER_CRASH_AT=point)
        for name, (code, words) in FAILED.items():
            do(home, code, *words, "--name", name)
        _work_in_slots(home)
    with home.rehearse(port=port, batch_ms=LONG, **at_rest()):
        for name, words in WAITING.items():
            do(home, 0, *words, "--name", name)
    finish(home.database, f"http://127.0.0.1:{port}")


def _work_in_slots(home: Home) -> None:
    do(home, 0, *GENERATE)
    do(home, 0, "task", "run", "Write a greeting.", "--name", "done-task")
    do(home, 0, "fan-out", "tasks.yaml")
    do(home, 1, "task", "run", "Write an unlucky greeting.", "--name", "failed-task")
    do(home, 1, "fan-out", "unlucky-tasks.yaml")
    do(home, 0, "task", "submit", "Write a farewell.", "--name", "reviewed-task", "--review")
    do(home, 0, "pool", "start", "--until-idle")
    do(home, -9, "task", "run", "Write a letter.", "--name", "cut-task", MUSTER_CRASH_AT="call.settled:1")
    do(home, -9, "fan-out", "tasks.yaml", MUSTER_CRASH_AT="call.opened:3")


def open_kinds(folder: Path, store: str) -> Home:
    """Copy one of the stores into an empty folder, as the project that it was."""
    return open_witness(folder, witness=STORES[store], project=KINDS / "project", place=PLACE, beside=(STATE,))


def at_rest() -> dict[str, str]:
    """Return the options of the rehearsal server with which the witness was made."""
    return {"script": str(KINDS / "sim-answers.yaml"), "faults": str(KINDS / "sim-faults.yaml")}


def do(home: Home, code: int, *words: str, **variables: str) -> None:
    """Run a command that must exit with a code."""
    done = home.muster(*words, **variables)
    print(done.code, " ".join(words))
    if done.code != code:
        print(done.out, done.err)
        sys.exit(f"expected exit code {code}")


def main() -> None:
    """Make the witness."""
    if PLACE.parent.exists():
        sys.exit(f"{PLACE.parent} is in the way: remove it first")
    os.environ["PATH"] = "/usr/bin:/bin"  # it is stored with the places of tasks
    PLACE.parent.mkdir()
    shutil.copytree(KINDS / "project", PLACE)
    home = Home(PLACE)
    build(home)
    store = STORES[sys.argv[1]]
    shutil.copyfile(home.database, store / "muster.db")
    shutil.copyfile(home.folder.parent / STATE, store / STATE)
    shutil.rmtree(PLACE.parent)


if __name__ == "__main__":
    main()
