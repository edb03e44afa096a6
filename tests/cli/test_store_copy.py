"""`muster store copy`: a store moved from a file to PostgreSQL and back, verified; and commands on PostgreSQL."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.cli.shell import Shell, line_with


def test_a_store_goes_to_postgres_and_back_and_is_the_same(shell: Shell, database_url: str) -> None:
    for number in range(3):
        assert shell.muster("ask", "sim/echo", f"hello {number}", "--name", f"ask{number}").code == 0
    there = shell.muster("store", "copy", ".muster", database_url, "--json")
    assert there.code == 0, there.err
    assert "journal: 3 of 3 rows" in there.err
    back = shell.muster("store", "copy", database_url, "back", "--json")
    assert back.code == 0, back.err
    assert there.data()["tables"] == back.data()["tables"]
    assert there.data()["rows"] > 10
    listed = [shell.muster(*home, "runs", "list", "--json").data() for home in ((), ("--home", "back"))]
    assert listed[0] == listed[1]


def test_a_copy_goes_on_where_the_store_stopped(shell: Shell, database_url: str) -> None:
    shell.muster("ask", "sim/echo", "hello")
    shell.muster("store", "copy", ".muster", database_url)
    shell.variables["MUSTER_DATABASE_URL"] = database_url
    assert shell.muster("ask", "sim/echo", "and more").out == "and more\n"
    assert len(shell.muster("runs", "list", "--json").data()) == 2
    info = shell.muster("store", "info", "--json").data()
    assert (info["kind"], info["check"]) == ("postgresql", "ok")
    assert shell.muster("store", "vacuum").code == 0


def test_a_store_that_is_not_empty_is_not_copied_into(shell: Shell, database_url: str) -> None:
    shell.muster("ask", "sim/echo", "hello")
    assert shell.muster("store", "copy", ".muster", database_url).code == 0
    again = shell.muster("store", "copy", ".muster", database_url)
    assert again.code != 0
    assert "the store to copy into is not empty" in again.err
    with psycopg.connect(database_url, autocommit=True) as database:
        assert database.execute("SELECT COUNT(*) FROM runs").fetchone() == (1,)


@pytest.mark.parametrize(("ahead", "left", "code"), [("1 hour", 1800, 0), ("-1 hour", -1800, 4)])
def test_whether_runs_are_in_progress_is_seen_by_the_clock_of_the_server(
    shell: Shell, database_url: str, ahead: str, left: int, code: int
) -> None:
    """A lease of a run ends in half an hour, or ended half an hour ago, by a clock here that is an hour off."""
    shell.variables["MUSTER_DATABASE_URL"] = database_url
    shell.muster("ask", "sim/echo", "hello")
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute(
            "UPDATE runs SET state = 'running', driver_host = 'far', driver_pid = 1, "
            f"lease_until = extract(epoch FROM now()) + {left}".encode()
        )
        database.execute("CREATE SCHEMA skewed")
        database.execute(
            "CREATE FUNCTION skewed.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
            f"$$ SELECT pg_catalog.clock_timestamp() + interval '{ahead}' $$".encode()
        )
        database.execute(f"ALTER DATABASE {database.info.dbname} SET search_path = skewed, pg_catalog, public".encode())
    told = shell.muster("store", "copy", database_url, "copy")
    assert told.code == code, told.err


def test_a_store_that_is_not_there_is_not_copied(shell: Shell, database_url: str) -> None:
    told = shell.muster("store", "copy", "nowhere", database_url)
    assert (told.code, "no store found at nowhere" in told.err) == (5, True)


@pytest.mark.parametrize(
    "place",
    [
        "postgresql+psycopg://me:hunter2secret@db/shop",
        "POSTGRESQL://me:hunter2secret@db/shop",
        "mysql://me:hunter2secret@db/shop",
        "postgresql:/me:hunter2secret@db/shop",
        "postgresql://me:hunter2secret@db:54x/shop",
        "postgresql://me:hunter@2secret@db/shop",
        "postgresql://me:hunter2secret@db/shop?oops=1",
    ],
)
def test_a_mistyped_address_is_not_taken_for_a_folder(shell: Shell, place: str) -> None:
    shell.muster("ask", "sim/echo", "hello")
    for told in (shell.muster("store", "copy", ".muster", place), shell.muster("store", "copy", place, "copy")):
        assert told.code == 2, told
        assert "the address of" in told.err
        assert "2secret" not in told.out + told.err
    assert sorted(path.name for path in shell.folder.iterdir()) == [".muster"]


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("", "copy", "the store to copy from is an empty text"),
        (".muster", "", "the store to copy into is an empty text"),
        (".muster", "notes.txt", "notes.txt is a file, not a folder"),
        (".muster", "notes.txt/deeper/down", "notes.txt is a file, not a folder"),
        (".muster", "x" * 300, "File name too long"),
    ],
)
def test_a_place_where_no_store_can_be_is_refused(shell: Shell, source: str, target: str, said: str) -> None:
    shell.muster("ask", "sim/echo", "hello")
    shell.write("notes.txt", "mine")
    told = shell.muster("store", "copy", source, target)
    assert (told.code, said in told.err) == (2, True), told
    assert sorted(path.name for path in shell.folder.iterdir()) == [".muster", "notes.txt"]


def test_a_copy_that_is_interrupted_leaves_nothing_and_says_that_nothing_was_copied(
    shell: Shell, database_url: str
) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = database_url
    shell.muster("ask", "sim/echo", "hello")
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(database_url) as holder, psycopg.connect(database_url, autocommit=True) as other:
        holder.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        with shell.start("store", "copy", database_url, "copy") as copying:
            while not other.execute(waits).fetchall():
                pass
            assert (shell.folder / "copy/muster.db").exists()
            copying.send_signal(signal.SIGINT)
            holder.rollback()
            _, err = copying.communicate(timeout=100)
    assert (copying.returncode, "interrupted; nothing was copied" in err) == (4, True), err
    assert sorted(path.name for path in shell.folder.iterdir()) == []


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGTERM)])
def test_a_copy_that_is_complete_when_a_signal_comes_says_so(
    shell: Shell, database_url: str, signals: tuple[signal.Signals, ...]
) -> None:
    shell.muster("ask", "sim/echo", "hello")
    with held_commits(database_url) as holder, shell.start("store", "copy", ".muster", database_url) as copying:
        await_commit(holder)
        for number in signals:
            copying.send_signal(number)
            line_with(copying.stderr, "the copy")
        holder.execute("SELECT pg_advisory_unlock(1)")
        out, err = copying.communicate(timeout=100)
        assert holder.execute("SELECT COUNT(*) FROM runs").fetchone() == (1,)
    assert (copying.returncode, "counts and digests agree" in out) == (0, True), out + err


def test_a_copy_that_is_stuck_is_killed_by_the_third_signal(shell: Shell, database_url: str) -> None:
    shell.muster("ask", "sim/echo", "hello")
    with held_commits(database_url) as holder, shell.start("store", "copy", ".muster", database_url) as copying:
        await_commit(holder)
        for said in ("stopping the copy", "the next signal kills it", "killed; see with muster store info whether"):
            copying.send_signal(signal.SIGTERM)
            line_with(copying.stderr, said)
        assert copying.wait(100) == 4


@contextmanager
def held_commits(url: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """Hold a lock for which whoever writes runs waits when it commits."""
    with psycopg.connect(url, autocommit=True) as holder:
        holder.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$"
        )
        holder.execute(
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON runs DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION wait()"
        )
        holder.execute("SELECT pg_advisory_lock(1)")
        yield holder


def await_commit(holder: "psycopg.Connection[tuple[Any, ...]]") -> None:
    """Wait until a commit waits."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
    while not holder.execute(waits).fetchall():
        pass


def test_the_password_of_a_database_is_shown_nowhere(shell: Shell) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = "postgresql://me:hunter2secret@127.0.0.1:1/shop"
    told = shell.muster("runs", "list")
    assert told.code == 4
    assert "postgresql://me@127.0.0.1:1/shop cannot be reached" in told.err
    assert "hunter2secret" not in told.out + told.err


def test_an_address_of_another_kind_is_refused(shell: Shell) -> None:
    shell.variables["MUSTER_DATABASE_URL"] = "mysql://me:hunter2secret@db/shop"
    told = shell.muster("runs", "list")
    assert told.code == 3
    assert "MUSTER_DATABASE_URL is not the address of a PostgreSQL database" in told.err
    assert "hunter2secret" not in told.err


@pytest.mark.parametrize("url", [None, "postgresql://me@127.0.0.1:1/shop"])
def test_without_the_package_files_work_and_a_database_says_what_to_install(shell: Shell, url: str | None) -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom muster.__main__ import main\nsys.argv[0] = 'muster'\nmain()"
    environment = {**shell.environment, **({} if url is None else {"MUSTER_DATABASE_URL": url})}
    done = subprocess.run(
        [sys.executable, "-c", code, "ask", "sim/echo", "hello", "--json"],
        cwd=shell.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    told = json.loads(done.stdout)
    if url is None:
        assert done.returncode == 0
    else:
        assert done.returncode == 3
        assert "pip install 'muster-ai[postgres]'" in told["error"]["suggestions"]
