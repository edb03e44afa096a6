"""Killed in every phase, a council comes to the result it would have had, and no reply is paid twice."""

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.app import Muster
from muster.councils.spec import stored
from tests.chaos import work
from tests.chaos.books import check_paid_once, read_books
from tests.chaos.stage import Stage, declare_prices, until
from tests.councils import mixed
from tests.councils.home import SEED, declared, program, rules, spec_of
from tests.rehearsal import ForkedRehearsal

MODELS = [work.ANTHROPIC, work.OPENAI]
AGENTS = {"py": program(), "other": program(answer="41")}
MEMBERS = [*MODELS, *AGENTS]
POINTS = (
    "call.opened:2",
    "call.answered:1",
    "call.settled:2",
    "store.after_commit:3",
    "call.settled:2",
    "call.answered:2",
    "call.opened:2",
    "store.before_commit:6",
    "call.settled:1",
    "call.settled:2",
    "run.before_release:1",
)


@pytest.fixture
def council_stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder with the agents of a council before a server that plays its models."""
    script = {"rules": rules(MEMBERS, MODELS, rounds=2)}
    with ForkedRehearsal(latency_ms=40, script=script) as running:
        stage = Stage(tmp_path / "stage", running)
        declare_prices(stage.folder)
        settings = stage.folder / "muster.toml"
        settings.write_text(settings.read_text(encoding="utf-8") + "\n" + declared(AGENTS), encoding="utf-8")
        yield stage


async def test_a_council_that_is_killed_again_and_again_pays_no_reply_twice(council_stage: Stage) -> None:
    stage = council_stage
    spec = stored(spec_of(*MEMBERS, rounds=2, min_rounds=2))
    order = stage.order(0, workload="deliberation", name="council", given=spec)
    kills = [(await stage.drive(order, crash_at=point)).killed for point in POINTS]
    assert sum(kills) > 6, kills
    ended = await stage.drive(order)
    result = ended.run["result"]["result"]
    assert [len(one["proposals"]) for one in result["rounds"]] == [4, 4]
    assert [len(one["evaluations"]) for one in result["rounds"]] == [4, 4]
    assert result["stop"]["reason"] == "rounds"  # most weigh all others alike, which convinces nobody
    books = await read_books(stage, "council")
    asked = [entry for entry in books.entries if entry.agent in MODELS]
    assert len(asked) == 2 * 2 * len(MODELS)
    keys = {entry.key for entry in asked}
    attempts = [attempt for attempt in books.attempts if attempt.key in keys]
    check_paid_once(replace(books, entries=asked, attempts=attempts), stage.sim.audit())


SYNTHESIS = {"text": "It is 42. One would rather not.", "dissent": [{"number": 1, "passage": "One would rather not."}]}
RESUME = ("runs", "resume", "panel")


@pytest.fixture
def mixed_stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder with agents of every kind and a policy for them, before a server that plays the models."""
    moderates = {"model": mixed.MODELS[1].partition("/")[2], "text": "Write the answer of the council"}
    script = {"rules": [moderates | {"answer": json.dumps(SYNTHESIS)}, *rules(mixed.MEMBERS, mixed.MODELS)]}
    with ForkedRehearsal(latency_ms=40, script=script) as running:
        stage = Stage(tmp_path / "stage", running)
        declare_prices(stage.folder)
        settings = stage.folder / "muster.toml"
        more = mixed.write_mixed_council(stage.folder)
        settings.write_text(settings.read_text(encoding="utf-8") + "\n" + more, encoding="utf-8")
        policy = {"agents": [{"agent": name} for name in mixed.MEMBERS], "rounds": 1, "synthesis": mixed.MODELS[1]}
        (stage.folder / "council.yaml").write_text(json.dumps(policy), encoding="utf-8")
        yield stage


async def only_waits_for_the_person(muster: Muster, kind: str) -> bool:
    """Return whether all others have said their part of a phase, and the question to the person is open."""
    run = await muster.runs.find("panel")
    said = sum(event.kind == kind for event in await muster.runs.events(run.id))
    return said == len(mixed.MEMBERS) - 1 and bool(await muster.runs.questions("panel"))


async def wait_and_die(stage: Stage, kind: str) -> None:
    """Go on until the council waits for nothing but the person, and kill it there."""
    process = await stage.start_muster(*RESUME)
    async with stage.open() as muster:
        await until(lambda: only_waits_for_the_person(muster, kind))
    process.kill()
    await process.communicate()
    assert process.returncode == -signal.SIGKILL


async def test_a_council_with_a_person_survives_a_kill_in_every_phase(mixed_stage: Stage) -> None:
    stage = mixed_stage
    held = ("council", "What is 6 × 7?", "--policy", "council.yaml", "--seed", str(SEED), "--name", "panel")
    begun = await stage.muster(*held, crash_at="call.answered:1")
    await wait_and_die(stage, "council.proposed")
    assert (await stage.muster("answer", "panel", "42 by hand"))[0] == 0
    evaluated = await stage.muster(*RESUME, crash_at="call.settled:2")
    await wait_and_die(stage, "council.evaluated")
    assert (await stage.muster("answer", "panel", mixed.votes_of_the_person()))[0] == 0
    written = await stage.muster(*RESUME, crash_at="call.answered:1")
    assert {code for code, _, _ in (begun, evaluated, written)} == {-signal.SIGKILL}
    code, out, err = await stage.muster(*RESUME, "--json")
    assert code == 0, err
    data = json.loads(out)["data"]
    assert (data["winner"]["agent"], data["synthesis"]["text"]) == (mixed.MODELS[0], SYNTHESIS["text"])
    assert (data["synthesis"]["kept"], data["synthesis"]["lost"]) == ([mixed.PERSON], [])
    assert len(data["rounds"][0]["proposals"]) == len(mixed.MEMBERS)
    books = await read_books(stage, "panel")
    asked_models = [entry for entry in books.entries if entry.agent in mixed.MODELS]
    keys = {entry.key for entry in asked_models}
    assert len(keys) == 2 * len(mixed.MODELS) + 1
    attempts = [attempt for attempt in books.attempts if attempt.key in keys]
    check_paid_once(replace(books, entries=asked_models, attempts=attempts), stage.sim.audit())
    tool = [attempt for attempt in books.attempts if attempt.key.endswith("/tool")]
    log = (stage.folder / "cli.log").read_text(encoding="utf-8").splitlines()
    assert 2 <= sum(json.loads(line)["event"] == "start" for line in log) <= len(tool)
