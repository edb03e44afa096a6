"""Makes the witness anew: `python -m tests.witness.make`, from the root of the tree.

It takes about a minute. A project is copied to /tmp/witness, runs of every kind are made there against a rehearsal
server, and then everything that `tests/witness/test_witness.py` looks at is recorded. Ids and times are others each
time. Make it anew only on purpose: the test says whether a later program still reads what an earlier one wrote.
"""

import json
import shutil
import socket
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.witness.home import STATE, WITNESS, Home
from tests.witness.opening import EVIDENCE, ORIGIN, PLACE, map_address, map_root, open_witness
from tests.witness.recording import names, record_changes, record_reading, write
from tests.witness.steps import CHANGES, READS

NO_BOOT = "00000000-0000-0000-0000-000000000000/1"
LONG = str(24 * 60 * 60 * 1000)  # no batch ends while the witness is made


def build(home: Home) -> None:
    """Make runs of every kind."""
    home.make_repository()
    port = free_port()
    with home.rehearse(port=port):
        _finished(home)
        _compared(home)
        _small_ones(home)
        _verified(home)
        _interrupted(home)
    with home.rehearse(port=port, batch_ms=LONG):
        _waiting(home)
        _killed(home)
    finish(home.database, f"http://127.0.0.1:{port}")


def _finished(home: Home) -> None:
    _do(
        home,
        1,
        "run",
        "desk",
        "--agent",
        "claude",
        "--judge",
        "gpt",
        "--epochs",
        "2",
        "--name",
        "finished",
        "--budget",
        "1",
    )
    _do(
        home,
        0,
        "review",
        "finished",
        "desk/promises-nothing",
        "right",
        "--by",
        "ada",
        "--note",
        "It did promise.",
        "--epoch",
        "1",
    )
    _do(home, 0, "review", "finished", "desk/kind-words", "borderline", "--by", "bob", "--epoch", "1")
    _do(home, 0, "review", "finished", "desk/cold-words", "wrong", "--by", "ada", "--epoch", "2")
    _do(home, 1, "runs", "rejudge", "finished", "--judge", "claude", "--name", "rejudged")
    _do(home, 0, "evidence", "keygen", "-o", "../evidence.key")
    _do(home, 0, "evidence", "export", "finished", "-o", "../evidence.tar", "--key", "../evidence.key")


def _compared(home: Home) -> None:
    _do(home, 0, "run", "bakery", "--agent", "careful", "--name", "base")
    _do(home, 0, "baseline", "set", "nightly", "base")
    _do(home, 1, "run", "bakery", "--agent", "hasty", "--name", "second")
    _do(home, 1, "run", "bakery", "--agent", "careful", "--agent", "hasty", "--filter", "*a0*", "--name", "matrix")


def _small_ones(home: Home) -> None:
    _do(home, 0, "ask", "claude", "How long can I return it?", "--name", "asked")
    _do(
        home,
        0,
        "ask",
        "gpt",
        "Hello in a batch",
        "--dispatch",
        "batch",
        "--linger",
        "0",
        "--poll-interval",
        "0.05",
        "--name",
        "asked-in-batch",
    )
    tickets = '{"agent": "careful", "tickets": ["lamp", "desk", "chair"]}'
    _do(home, 0, "runs", "start", "triage", "--input", tickets, "--name", "labels")
    _do(home, 0, "runs", "fork", "labels", "--from", "ticket/1")


def _verified(home: Home) -> None:
    _do(home, 0, "verify", "src", "--name", "looked", "--budget", "1")


def _interrupted(home: Home) -> None:
    words = ("run", "desk", "--agent", "claude", "--judge", "gpt", "--concurrency", "1", "--name", "interrupted")
    _do(home, -9, *words, MUSTER_CRASH_AT="call.opened:4")
    _do(home, -9, "ask", "claude", "The answer is lost.", "--name", "lost", MUSTER_CRASH_AT="call.answered:1")


def _waiting(home: Home) -> None:
    left = ("--dispatch", "batch", "--detach", "--linger", "0")
    _do(home, 0, "run", "desk", "--agent", "claude", "--judge", "gpt", "--filter", "*words", "--name", "waiting", *left)
    _do(home, 0, "ask", "gpt", "Hello later", "--name", "asked-later", *left)
    _do(home, 0, "ask", "claude", "Never mind", "--name", "unwanted", *left)
    _do(home, 0, "verify", "src", "--batch", "--detach", "--linger", "0", "--name", "looked-later")


def _killed(home: Home) -> None:
    """Leave a run as its driver left it: nothing looks at the store after this, so its attempt stays open."""
    words = ("run", "desk", "--agent", "claude", "--judge", "gpt", "--concurrency", "1", "--name", "killed")
    _do(home, -9, *words, MUSTER_CRASH_AT="call.opened:5")


def finish(database: Path, origin: str) -> None:
    """Make one whole file of the store, with nothing in it that names this machine."""
    with closing(sqlite3.connect(database)) as store:
        with store:
            for table, column in (("runs", "error"), ("events", "data"), ("journal", "error"), ("attempts", "error")):
                for end in (",", '"'):
                    store.execute(
                        f"UPDATE {table} SET {column} = replace({column}, ?, ?) WHERE {column} IS NOT NULL",
                        (f" on {socket.gethostname()}{end}", f" on witness{end}"),
                    )
            for table in ("runs", "batches"):
                store.execute(
                    f"UPDATE {table} SET driver_host = 'witness', driver_started = ?, lease_until = 1 "
                    "WHERE driver_host IS NOT NULL",
                    (NO_BOOT,),
                )
            assert store.execute("SELECT COUNT(*) FROM workers").fetchone() == (0,)
            assert store.execute("SELECT COUNT(*) FROM processes").fetchone() == (0,)
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    map_address(database, origin, ORIGIN)
    with closing(sqlite3.connect(database)) as store:
        store.execute("VACUUM")
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def free_port() -> str:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def _do(home: Home, code: int, *words: str, **variables: str) -> None:
    done = home.muster(*words, **variables)
    print(done.code, " ".join(words))
    if done.code != code:
        print(done.out, done.err)
        sys.exit(f"expected exit code {code}")


def keep(home: Home) -> None:
    """Put the store, the state of the server and the evidence into the tree."""
    for folder in ("recorded", "exports"):
        shutil.rmtree(WITNESS / folder, ignore_errors=True)
    shutil.copyfile(home.database, WITNESS / "muster.db")
    shutil.copyfile(home.folder.parent / STATE, WITNESS / STATE)
    for name in EVIDENCE:
        shutil.copyfile(home.folder.parent / name, WITNESS / name)
    facts = {"made_at": time.time(), "version": home.muster("--version", "--json").data["version"]}
    (WITNESS / "witness.json").write_text(json.dumps(facts, indent=1) + "\n")


def record() -> None:
    """Record what every command says about the witness."""
    for part in READS:
        with tempfile.TemporaryDirectory() as folder:
            for path, found in record_reading(Path(folder), part):
                write(found, path)
    for part in CHANGES:
        with tempfile.TemporaryDirectory() as folder:
            for path, found in record_changes(Path(folder), part):
                write(found, path)
    with tempfile.TemporaryDirectory() as folder:
        home = open_witness(Path(folder))
        map_root(home.database, home.folder, PLACE)
        (WITNESS / "exports").mkdir()
        for name, run in names().items():
            if name.startswith("@"):
                file = WITNESS / "exports" / f"{name[1:]}.jsonl"
                _do(home, 0, "runs", "export", run, "-o", str(file))


def main() -> None:
    """Make the witness."""
    if PLACE.parent.exists():
        sys.exit(f"{PLACE.parent} is in the way: remove it first")
    PLACE.parent.mkdir()
    shutil.copytree(WITNESS / "project", PLACE)
    home = Home(PLACE)
    build(home)
    keep(home)
    record()
    shutil.rmtree(PLACE.parent)


if __name__ == "__main__":
    main()
