"""What a judge said, told again from its recorded replies: the same as when it was asked."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.call import Reply, Request, Stop
from muster.domain.canonical import Json
from muster.domain.entry import Entry
from muster.domain.errors import BadOutput, InvalidRequest
from muster.engine.context import Context
from muster.suites.judge.command import ask_command
from muster.suites.judge.question import pose
from muster.suites.judge.rubric import Heard, judge, retell_command, retell_judge
from muster.suites.values.verdict import Judgement, Observation
from tests.engine.house import Puppet, house
from tests.suites.judge.stage import SEEN, case, item, reply, saying, verdict

KEY = "case/x/s/1"
FIRST, REPAIR = f"{KEY}/judge/critic/1", f"{KEY}/judge/critic/1/repair"
GOOD = verdict()
LOOSE = verdict(item("right", evidence="never said"), item("brief", 0.5))
OTHER = verdict(item("right", 0.1), item("brief", 0.2))
NOTHING_TO_JUDGE_BY: dict[str, Any] = {"rubric": (), "description": ""}


def heard(entries: list[Entry]) -> dict[str, Heard]:
    return {entry.key: Heard(reply=entry.reply, error=entry.error) for entry in entries}


def told(calls: dict[str, Heard], seen: Observation = SEEN, samples: int = 1, **changes: Any) -> Judgement:
    return retell_judge(case(**changes), seen, calls, judge="critic", samples=samples, key=KEY, threshold=0.7)


async def asked(folder: Path, by: Puppet, seen: Observation, samples: int) -> tuple[Judgement, dict[str, Heard]]:
    """Have an answer judged for real, and give what the journal has of it."""
    found: list[Judgement] = []

    async def work(ctx: Context, spec: Any) -> Json:
        found.append(await judge(ctx, case(), seen, judge="critic", samples=samples, key=KEY, threshold=0.7))
        return None

    async with house(folder, critic=by) as h:
        run = await h.drive(work)
        entries = [entry async for entry in h.store.archive.entries(run.id)]
    return found[0], heard(entries)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize(
    "said",
    [
        (GOOD,),
        ("no JSON", GOOD),
        ("no JSON", "nor this"),
        (LOOSE, GOOD),
        (LOOSE,),
        (GOOD, OTHER, "no JSON", OTHER),
        (reply(GOOD, stop=Stop.MAX_TOKENS), reply("", stop=Stop.REFUSED), GOOD),
        (InvalidRequest("it is too long"),),
        ("no JSON", InvalidRequest("it is too long"), GOOD),
        (BadOutput("it is in no shape"), GOOD),
        (BadOutput("it is in no shape"),),
        (pose(case(), SEEN).fence.token + GOOD, GOOD),
        (reply("see the data", data=json.loads(GOOD)),),
    ],
)
async def test_what_is_told_again_is_what_was_judged(
    tmp_path: Path, said: tuple[str | Reply | Exception, ...], samples: int
) -> None:
    judgement, calls = await asked(tmp_path, saying(*said), SEEN, samples)
    assert told(calls, samples=samples) == judgement


async def test_a_judge_who_was_not_asked_is_told_again_too(tmp_path: Path) -> None:
    silent = Observation()
    judgement, calls = await asked(tmp_path, saying(GOOD), silent, 2)
    assert (calls, told(calls, silent, 2)) == ({}, judgement)
    assert "nothing to judge by" in told({}, **NOTHING_TO_JUDGE_BY).failures[0]
    nobody = retell_judge(case(), SEEN, {}, judge=None, samples=1, key=KEY, threshold=0.7)
    assert (nobody.by, nobody.failed) == ("", True)


@pytest.mark.parametrize("calls", [{}, {FIRST: Heard()}, {FIRST: Heard(reply=reply("no JSON"))}])
def test_a_call_that_is_not_recorded_is_a_failure(calls: dict[str, Heard]) -> None:
    found = told(calls)
    assert (found.failed, "not recorded" in found.failures[0]) == (True, True)


def test_another_reply_is_another_judgement() -> None:
    honest, forged = ({FIRST: Heard(reply=reply(text))} for text in (GOOD, OTHER))
    assert [each.score for each in told(honest).items] == [1.0, 0.5]
    assert [each.score for each in told(forged).items] == [0.1, 0.2]


def test_a_repair_that_nobody_asked_for_is_not_heard() -> None:
    calls = {FIRST: Heard(reply=reply(OTHER)), REPAIR: Heard(reply=reply(GOOD))}
    assert told(calls) == told({FIRST: calls[FIRST]})


@given(
    st.text(max_size=60), st.one_of(st.none(), st.text(max_size=20), st.dictionaries(st.text(max_size=5), st.none()))
)
def test_any_reply_comes_to_a_judgement(text: str, data: Json) -> None:
    calls = {key: Heard(reply=reply(text, data=data)) for key in (FIRST, REPAIR)}
    assert told(calls).failed
    assert retell_command(case(process=("check",)), {f"{KEY}/process": calls[FIRST]}, key=KEY).by == "check"


SCORES = {"scores": [{"rubric_id": "right", "score": 1}, {"rubric_id": "brief", "score": 0.25, "rationale": "so"}]}


@pytest.mark.parametrize(
    "said",
    [json.dumps(SCORES), json.dumps({"passed": True}), '{"scores": []}', "no JSON", InvalidRequest("it broke")],
)
async def test_what_a_command_said_is_told_again(tmp_path: Path, said: str | Exception) -> None:
    commanded, found = case(process=("check",)), []

    async def answer(request: Request, n: int) -> Reply:
        if isinstance(said, Exception):
            raise said
        return reply(said)

    async def work(ctx: Context, spec: Any) -> Json:
        found.append(await ask_command(ctx, commanded, SEEN, key=KEY))
        return None

    async with house(tmp_path, check=Puppet(answer)) as h:
        run = await h.drive(work)
        entries = [entry async for entry in h.store.archive.entries(run.id)]
    assert [retell_command(commanded, heard(entries), key=KEY)] == found


def test_a_command_that_is_not_recorded_or_not_named_is_a_failure() -> None:
    assert "not recorded" in retell_command(case(process=("check",)), {}, key=KEY).failures[0]
    assert "process_cmd" in retell_command(case(), {}, key=KEY).failures[0]
