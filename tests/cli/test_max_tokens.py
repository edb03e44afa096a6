"""`max_tokens` of an agent's section holds for whatever it is asked, and what goes beyond it is said."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from muster.domain.rules import CURRENT_RULES
from tests.rehearsal import ForkedRehearsal

from .shell import Shell

KINDS = Path(__file__).parent.parent / "data/witness-kinds"
ANSWERS = KINDS / "sim-answers.yaml"
SIDES = ("--agent", "claude", "--counterpart", "gpt", "--judge", "gpt", "--confirm-judge", "thorough")
TABLE = (*SIDES, "--goal", "A table is booked", "--message-limit", "4")
SMALL, LARGE, USUAL = 300, 6000, 2048  # of claude and gpt, of thorough, and of plain, whose section names none
ROOM = 16_384  # for the thinking of plain, which thinks before it answers
LIMITS = {"claude": SMALL, "gpt": SMALL, "thorough": LARGE}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Shell]:
    """The project of the second witness before a rehearsal server."""
    shutil.copytree(KINDS / "project", tmp_path / "project")
    with ForkedRehearsal(script=yaml.safe_load(ANSWERS.read_text(encoding="utf-8"))) as rehearsal:
        shell = Shell(tmp_path / "project")
        shell.use(rehearsal)
        yield shell


def asked(shell: Shell) -> list[tuple[str, int]]:
    """Return the limit of each call in the store, with its agent."""
    query = "SELECT agent, request FROM journal JOIN requests USING (position) WHERE kind = 'call' ORDER BY position"
    with closing(sqlite3.connect(shell.folder / ".muster/muster.db")) as store:
        return [(agent, json.loads(request)["max_tokens"]) for agent, request in store.execute(query)]


WORK = {
    "question": ("ask", "claude", "How long can I return it?"),
    "judge": ("run", "desk", "--agent", "claude", "--judge", "gpt"),
    "judge that thinks": ("run", "desk", "--agent", "claude", "--judge", "thorough"),
    "council as judge": ("run", "desk", "--agent", "claude", "--judge", "council:council.yaml"),
    "generation": ("generate", "--agent", "thorough", "--extend", "desk", "--count", "1", "--dry-run"),
    "verification": ("verify", "src"),
    "council": ("council", "Should the cache be shared?", "--policy", "council.yaml"),
    "battle": ("battle", *TABLE),
    "scale test": ("scale", *TABLE, "--runs", "1"),
}


@pytest.mark.parametrize("words", WORK.values(), ids=WORK)
def test_the_section_holds_for_every_kind_of_work(desk: Shell, words: tuple[str, ...]) -> None:
    assert desk.muster(*words).code in (0, 1)
    calls = asked(desk)
    assert calls
    assert calls == [(agent, LIMITS[agent]) for agent, _ in calls]


def test_a_caller_may_ask_for_less_and_what_is_beyond_the_section_is_said(desk: Shell) -> None:
    less = desk.muster("ask", "claude", "How long can I return it?", "--max-tokens", "100")
    more = desk.muster("ask", "claude", "How long can I return it?", "--max-tokens", "700")
    assert [limit for _, limit in asked(desk)] == [100, SMALL]
    assert "note:" not in less.err
    said = "note: claude may write 300 tokens (max_tokens of its section in muster.toml); 700 were asked for\n"
    assert more.err.count(said) == 1
    events = desk.muster("runs", "show", "last", "--events", "--json").data()["events"]
    told = [event["data"] for event in events if event["kind"] == "agent.limited"]
    assert told == [{"agent": "claude", "asked": 700, "max_tokens": SMALL}]


def test_a_limit_that_is_asked_for_holds_where_it_is_the_usual_one_too(desk: Shell) -> None:
    sides = ("--agent", "thorough", "--counterpart", "thorough", "--goal", "A table is booked", "--judge", "gpt")
    desk.muster("battle", *sides, "--message-limit", "1", "--max-tokens", "512")
    assert {limit for agent, limit in asked(desk) if agent == "thorough"} == {512}


def test_it_is_said_once_for_each_agent_of_a_run(desk: Shell) -> None:
    done = desk.muster("battle", *TABLE)
    assert done.err.count("note: claude may write 300 tokens") == 1
    assert done.err.count("note: gpt may write 300 tokens") == 1
    assert "thorough may write" not in done.err
    quiet = desk.muster("battle", *TABLE, "--quiet")
    assert "may write" not in quiet.err


def test_an_agent_whose_section_names_no_limit_is_asked_as_is_usual(desk: Shell) -> None:
    desk.muster("ask", "plain", "How long can I return it?")
    desk.muster("run", "desk", "--agent", "plain", "--judge", "plain")
    desk.muster("battle", "--agent", "plain", "--goal", "A table is booked", "--judge", "plain", "--message-limit", "1")
    limits = {limit for _, limit in asked(desk)}
    assert limits == {ROOM + one for one in (USUAL, 1024 + 300, 1024 + 600, 768, 512)}


def test_a_run_with_rules_of_a_later_muster_is_refused_before_it_is_touched(desk: Shell) -> None:
    desk.variables["MUSTER_CRASH_AT"] = "call.opened:4"
    desk.muster("run", "desk", "--agent", "claude", "--judge", "gpt", "--concurrency", "1", "--name", "cut")
    del desk.variables["MUSTER_CRASH_AT"]
    with closing(sqlite3.connect(desk.folder / ".muster/muster.db")) as store, store:
        store.execute("UPDATE runs SET rules = 99")
    refused = desk.muster("runs", "resume", "cut", "--json").error()
    assert "default rules of version 99" in refused["message"]
    assert desk.muster("runs", "show", "cut", "--json").data()["state"] == "interrupted"


def test_an_exported_run_keeps_its_rules_in_another_store(desk: Shell, tmp_path: Path) -> None:
    desk.muster("run", "desk", "--agent", "claude", "--judge", "gpt", "--name", "judged")
    assert desk.muster("runs", "export", "judged", "-o", "judged.jsonl").code == 0
    other = Shell(tmp_path / "other", dict(desk.variables))
    shutil.copytree(KINDS / "project", other.folder)
    assert other.muster("runs", "import", str(desk.folder / "judged.jsonl")).code == 0
    before = asked(other)
    assert other.muster("runs", "replay", "judged").code == 1  # as its verdict is
    with closing(sqlite3.connect(other.folder / ".muster/muster.db")) as store:
        assert store.execute("SELECT rules, calls_total, calls_reused FROM runs").fetchall()[1:] == [
            (CURRENT_RULES, 5, 5)
        ]
    assert len(before) == 5
