"""The store as a file: versions, damage, locks, full disks, secrets, and several processes."""

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from muster.domain.call import Reply, Stop
from muster.domain.entry import Failed
from muster.domain.errors import StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.store.base import RunRelease
from muster.store.queries import migrations, queries
from muster.store.sqlite.connection import SqliteConnection
from muster.store.sqlite.store import migrate, open_file, open_sqlite
from muster.testing.stores import DRIVER, NOW, driven, new_run, opening, replied, settling

NEWEST = migrations("sqlite")[-1][0]


async def test_a_store_is_private_to_its_owner(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "home" / "muster.db")
    await store.maintenance.close()
    assert stat.S_IMODE((tmp_path / "home" / "muster.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


async def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    await store.maintenance.close()
    again = open_sqlite(tmp_path / "muster.db")
    entry = await again.journal.find(run, "k")
    assert entry is not None
    assert entry.reply == replied(40).reply
    info = await again.maintenance.info()
    assert (info["version"], info["check"]) == (NEWEST, "ok")
    await again.maintenance.close()


def older_store(path: Path) -> None:
    """Make a store of the version in which texts were part of the journal."""
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        for _, _, text in migrations("sqlite")[:4]:
            raw.executescript(text)
        columns = "run_id, key, kind, state, digest, request, outcome, opened_at"
        row = f"INSERT INTO journal ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, 1)"
        raw.execute(row, ("r", "asked", "call", "open", "d", '{"messages":[]}', None))
        raw.execute(row, ("r", "answered", "call", "done", "d", '{"messages":[]}', '{"text":"yes","stop":"end"}'))
        raw.execute(row, ("r", "step", "step", "done", "d", None, "[1]"))
        raw.execute("PRAGMA user_version = 4")


async def test_a_store_of_an_older_version_keeps_what_was_asked_and_answered(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    older_store(path)
    store = open_sqlite(path)
    asked, answered, step = [entry async for entry in store.archive.entries(RunId("r"))]
    assert (asked.key, asked.request, asked.reply) == ("asked", {"messages": []}, None)
    assert (answered.key, answered.request, answered.reply) == (
        "answered",
        {"messages": []},
        Reply(text="yes", stop=Stop.END),
    )
    assert (step.key, step.request, step.value) == ("step", None, [1])
    await store.maintenance.close()


@pytest.mark.parametrize("is_there", [False, True], ids=["no file", "an empty file"])
def test_a_new_store_has_the_tables_that_its_migrations_lead_to(tmp_path: Path, is_there: bool) -> None:
    if is_there:  # as where a file can only be made before its tables are
        (tmp_path / "new.db").touch()
    with contextlib.closing(open_file(tmp_path / "new.db")) as made:
        assert (made.pragma("user_version"), made.pragma("journal_mode")) == (NEWEST, "wal")
        assert made.pragma("integrity_check") == "ok"
    assert [path.name for path in tmp_path.iterdir()] == ["new.db"]
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as old:
        for _, _, text in migrations("sqlite"):
            old.executescript(text)
        assert tables_of(tmp_path / "new.db") == tables_of(tmp_path / "old.db") != {}


def tables_of(path: Path) -> dict[str, list[object]]:
    """Return the columns of every table and of every index."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        names = raw.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").fetchall()
        of = {"table": "table_xinfo", "index": "index_xinfo"}
        return {name: raw.execute(f"PRAGMA {of[kind]}({name})").fetchall() for kind, name in names}


def test_a_store_that_cannot_be_brought_up_to_date_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    older_store(path)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE INDEX journal_by_run ON attempts (epoch)")  # the last step of the migration trips over it
    with pytest.raises(StoreFailed, match="journal_by_run"):
        open_sqlite(path)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (4,)
        assert raw.execute("SELECT key, request, outcome FROM journal WHERE key = 'step'").fetchone() == (
            "step",
            None,
            "[1]",
        )


@pytest.mark.parametrize(("until", "refused"), [(60.0, True), (-1.0, False)])
async def test_tables_are_not_changed_under_a_program_that_is_at_work(
    tmp_path: Path, until: float, refused: bool
) -> None:
    path = tmp_path / "muster.db"
    older_store(path)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        columns = "id, workload, spec, state, tags, seed, concurrency, created_at, driver_pid, lease_until"
        values = ("r", "w", "null", "running", "[]", 1, 1, 1.0, 4711, time.time() + until)
        raw.execute(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    if refused:
        with pytest.raises(StoreFailed, match=r"run r is in progress \(process 4711\)"):
            open_sqlite(path)
        return
    store = open_sqlite(path)
    assert (await store.maintenance.info())["version"] == NEWEST
    await store.maintenance.close()


async def test_a_deleted_run_leaves_no_text_behind(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.COMPLETED, reason="it is done", at=NOW))
    assert _texts(tmp_path / "muster.db") == (1, 1)
    await store.runs.delete(run, NOW)
    assert _texts(tmp_path / "muster.db") == (0, 0)
    await store.maintenance.close()


def _texts(path: Path) -> tuple[int, int]:
    """Say how many requests and outcomes the file holds."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        counts = [raw.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("requests", "outcomes")]
    return counts[0], counts[1]


async def test_whoever_has_a_store_open_that_is_upgraded_starts_no_run_any_more(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    await store.runs.create(new_run("run1"))
    with contextlib.closing(sqlite3.connect(tmp_path / "muster.db")) as newer:
        newer.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreFailed, match="was upgraded to version 999 while it was open"):
        await store.runs.create(new_run("run2"))
    with pytest.raises(StoreFailed, match="was upgraded to version 999"):
        await store.maintenance.touch()
    await store.maintenance.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(StoreFailed, match=rf"version 99; this program supports versions up to {NEWEST}\b") as caught:
        open_sqlite(path)
    assert "upgrade" in caught.value.suggestions[0]


@pytest.mark.parametrize(
    "content", [b"this is not a database at all, it is a text", b"SQLite format 3\x00" + b"x" * 4096]
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "muster.db"
    path.write_bytes(content)
    with pytest.raises(StoreFailed, match=str(path)) as caught:
        open_sqlite(path)
    assert caught.value.suggestions
    assert path.read_bytes() == content


async def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    store = open_sqlite(path)
    for i in range(50):
        await store.runs.create(new_run(f"run{i}", name="x" * 2000))
    await store.maintenance.close()
    raw = bytearray(path.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)  # all but the first page, which says what the file is
    path.write_bytes(raw)
    with pytest.raises(StoreFailed, match="is damaged"):
        open_sqlite(path)


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreFailed, match="cannot be created") as caught:
        open_sqlite(tmp_path / "file" / "muster.db")
    assert "--home" in caught.value.suggestions[0]


async def test_configured_secrets_never_reach_the_file(tmp_path: Path) -> None:
    secret = "sk-very-secret-0123456789"
    store = open_sqlite(tmp_path / "muster.db", secrets=(secret,))
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(text=f"the key is {secret}!")))
    failing = opening(run, claim.epoch, "f")
    await store.journal.open(failing)
    error = {"message": f"bad key {secret}"}
    await store.journal.settle(settling(failing, Failed(error=error, uncertain=False, gives_up=True)))
    await store.events.append(run, claim.epoch, "note", {"k": secret}, 0.0)
    await store.events.put_partial(opening(run, claim.epoch, "p").attempt, secret, 0.0)
    entry = await store.journal.find(run, "k")
    assert entry is not None
    assert entry.reply is not None
    assert entry.reply.text == "the key is [redacted]!"
    await store.maintenance.close()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


async def test_a_full_disk_stops_the_writer_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """Files may not grow past a limit in a child process; what it said was durable is there, and only that."""
    script = """
import asyncio, resource, signal, sys
from pathlib import Path
from muster.domain.errors import StoreFailed
from muster.store.sqlite.store import migrate, open_sqlite
from muster.store.sqlite.connection import SqliteConnection
from muster.testing.stores import new_run
async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = open_sqlite(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
    for i in range(10_000):
        try:
            await store.runs.create(new_run(f"run{i:05}", name="x" * 1000))
        except StoreFailed as error:
            print(i, error.message, error.suggestions[0], flush=True)
            return
asyncio.run(main())
"""
    path = tmp_path / "muster.db"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    made, _, message = done.stdout.partition(" ")
    assert "nothing was half-written" in message
    store = open_sqlite(path)
    runs = await store.runs.select(limit=20_000)
    assert len(runs) == int(made) > 10
    assert (await store.maintenance.info())["check"] == "ok"
    await store.maintenance.close()


async def test_two_processes_never_exceed_a_budget_together(tmp_path: Path) -> None:
    """Each tries to reserve far more than the day allows; together they get exactly what fits."""
    script = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from muster.domain.budget import Granted, Level
from muster.domain.money import Microdollars
from muster.store.sqlite.store import migrate, open_sqlite
from muster.store.sqlite.connection import SqliteConnection
from muster.testing.stores import DRIVER, NOW, driven, opening
async def main():
    store = open_sqlite(Path(sys.argv[1]))
    run, claim = await driven(store, sys.argv[2])
    levels = (Level(id="day:2027-01-15", cap=Microdollars(10_000)),)
    openings = [opening(run, claim.epoch, f"k{i}", most=70)._replace(levels=levels) for i in range(200)]
    decisions = await asyncio.gather(*(store.journal.open(one) for one in openings))
    print(sum(isinstance(decision, Granted) for decision in decisions))
    await store.maintenance.close()
asyncio.run(main())
"""
    path = tmp_path / "muster.db"
    await open_sqlite(path).maintenance.close()
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, str(path), name, stdout=asyncio.subprocess.PIPE
        )
        for name in ("run1", "run2")
    ]
    granted = [int((await child.communicate())[0]) for child in children]
    assert sum(granted) == 10_000 // 70
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT reserved FROM budgets WHERE id = 'day:2027-01-15'").fetchone() == (sum(granted) * 70,)
    raw.close()


async def test_a_change_by_another_process_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    store = open_sqlite(path)
    waiting = asyncio.ensure_future(store.changes.wait(200, store.changes.commits))
    await asyncio.sleep(0)
    script = f"""
import asyncio
from pathlib import Path
from muster.store.sqlite.store import migrate, open_sqlite
from muster.store.sqlite.connection import SqliteConnection
from muster.testing.stores import new_run
async def main():
    store = open_sqlite(Path({str(path)!r}))
    await store.runs.create(new_run("run1"))
    await store.maintenance.close()
asyncio.run(main())
"""
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], check=True)
    assert await waiting
    assert await store.runs.get(new_run("run1").id) is not None
    await store.maintenance.close()


async def test_the_folder_of_a_new_store_keeps_itself_out_of_git_and_another_is_left_alone(tmp_path: Path) -> None:
    for name in ("old", ".muster"):
        (tmp_path / name).mkdir()
    for name in ("new", "old", ".muster"):
        await open_sqlite(tmp_path / name / "muster.db").maintenance.close()
    assert (tmp_path / "new/.gitignore").read_text() == "*\n"
    assert (tmp_path / ".muster/.gitignore").read_text() == "*\n"  # markers may have been there before
    assert not (tmp_path / "old/.gitignore").exists()


async def test_many_processes_may_make_one_store_at_the_same_instant(tmp_path: Path) -> None:
    script = """
import asyncio, pathlib, sys
from muster.store.sqlite.store import migrate, open_sqlite
from muster.store.sqlite.connection import SqliteConnection
async def main():
    for i in range(8):
        print("ready", flush=True)
        path = pathlib.Path(sys.stdin.readline().strip())
        await open_sqlite(path).maintenance.close()
asyncio.run(main())
"""
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(3)
    ]
    for i in range(8):
        for child in children:
            assert child.stdout is not None
            await child.stdout.readline()
        for child in children:
            assert child.stdin is not None
            child.stdin.write(f"{tmp_path / str(i) / 'muster.db'}\n".encode())
    assert [await child.wait() for child in children] == [0, 0, 0]


async def test_vacuum_gives_space_back(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    for i in range(200):
        run = await store.runs.create(new_run(f"run{i}", name="x" * 5000))
        await store.runs.delete(run.id, 0.0)
    before = await store.maintenance.info()
    await store.maintenance.vacuum(DRIVER, NOW)
    after = await store.maintenance.info()
    assert after["free_bytes"] == 0
    assert after["bytes"] <= before["bytes"]
    await store.maintenance.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    await store.maintenance.close()
    with pytest.raises(StoreFailed, match="closed"):
        await store.runs.create(new_run("run1"))


async def test_closing_writes_what_is_queued(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    writes = [store.runs.create(new_run(f"run{i}")) for i in range(20)]
    await store.maintenance.close()
    await asyncio.gather(*writes)
    again = open_sqlite(tmp_path / "muster.db")
    assert len(await again.runs.select()) == 20
    await again.maintenance.close()


async def test_the_attempts_of_one_call_are_read_without_those_of_all_others(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run, claim = await driven(store)
    for key, n in (("a", 1), ("k", 1), ("k", 2), ("z", 1)):
        opened = opening(run, claim.epoch, key, n=n)
        await store.journal.open(opened)
        await store.journal.settle(settling(opened, Failed(error={"message": "no"}, uncertain=False)))
    assert [(attempt.key, attempt.n) for attempt in await store.archive.attempts_of(run, "k")] == [("k", 1), ("k", 2)]
    await store.maintenance.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "muster.db")) as raw:
        plan = raw.execute(
            f"EXPLAIN QUERY PLAN {queries()['select_attempts_of_call']}", {"run_id": run, "key": "k"}
        ).fetchall()
    assert [row[3] for row in plan] == ["SEARCH attempts USING PRIMARY KEY (run_id=? AND key=?)"]


class OtherColumns(NamedTuple):
    """A row whose columns no query has in this order."""

    value: str
    name: str


def test_rows_are_read_only_into_the_columns_that_their_query_has(tmp_path: Path) -> None:
    connection = SqliteConnection(tmp_path / "muster.db")
    with contextlib.closing(connection):
        migrate(connection)

        with pytest.raises(ValueError, match="select_trait has the columns"):
            connection.named_rows("select_trait", {"name": "nonce"}, OtherColumns)


OLDER_RUNS = (  # id, state, origin, lineage; each a second after the one before
    ("first", "failed", None, "lineage:first"),
    ("second", "failed", "first", "lineage:first"),
    ("done", "completed", "second", "lineage:first"),
    ("branch", "interrupted", "first", "lineage:first"),
    ("later", "completed", "branch", "lineage:first"),
    ("fork", "failed", "first", "lineage:fork"),
    ("ancient", "failed", None, None),
    ("continued", "failed", "ancient", "run:ancient"),
    ("again", "canceled", "ancient", "run:ancient"),
)


async def test_a_store_of_an_older_version_gets_one_end_for_each_lineage(tmp_path: Path) -> None:
    """The oldest completed run, else the newest; runs on the way to it lead to the next one, others to the end."""
    path = tmp_path / "muster.db"
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        for number, _, text in migrations("sqlite"):
            if number <= 14:
                raw.executescript(text)
        for at, (name, state, origin, lineage) in enumerate(OLDER_RUNS):
            columns = "id, workload, spec, state, tags, seed, concurrency, created_at, origin_id, origin_reuse, lineage"
            values = (name, "w", "null", state, "[]", 1, 1, float(at), origin, origin and "replies", lineage)
            raw.execute(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        raw.execute("PRAGMA user_version = 14")
    store = open_sqlite(path)
    links = {run.id: run.continued_by for run in await store.runs.select()}
    await store.maintenance.close()
    assert links == {
        "first": "second",
        "second": "done",
        "done": None,
        "branch": "done",
        "later": None,
        "fork": None,
        "ancient": "again",
        "continued": "again",
        "again": None,
    }
