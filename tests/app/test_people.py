"""People as agents of every workload: asked with `m.runs.questions`, answered with `m.runs.answer`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import muster
from muster.app import Muster, open_muster
from muster.app.pool.values import FanOut
from muster.app.runs.handle import RunHandle
from muster.app.runs.questions import MAX_ANSWER, OpenQuestion
from muster.app.suites.generation import Generation
from muster.app.verify.request import ConcludedVerification
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, Conflict, NotFound, TimedOut
from muster.domain.run import RunState
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.suites.order import GenerationOrder

SETTINGS = """
[agents.me]
kind = "human"

[agents.hasty]
kind = "human"
timeout_secs = 0.05

[agents.me-too]
kind = "scripted"
model = "echo"
"""
SUITE = """
schema_version: 1
skill_or_agent: maths
cases:
  - id: maths/product
    description: Multiplies politely.
    input: {messages: [{role: user, content: "what is 6*7?"}]}
    expected:
      output: [{kind: contains, value: "42"}]
      rubric: [{id: polite, description: The answer is polite.}]
    evaluator_config: {evaluator: judge}
"""
CHAIN = """
name: letter
steps:
  - name: draft
    agent: sim/echo
    prompt: a letter
  - name: opinion
    agent: me
    prompt: "what of {steps.draft.output}?"
  - name: final
    agent: sim/echo
    prompt: "{steps.opinion.output}"
"""
VERDICT = {"items": [{"id": "polite", "score": 1.0, "evidence": "please", "rationale": "it says please"}]}
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@REGISTRY.workload("test-two-people")
async def two_people(ctx: Context, spec: Any) -> Any:
    calls = [ctx.call("me", f"question {key}", key=key) for key in spec]
    return [reply.text for reply in await ctx.gather(*calls)]


@REGISTRY.workload("test-people-below")
async def people_below(ctx: Context, spec: Any) -> Any:
    return await ctx.gather(*(ctx.child(f"child/{n}", "test-two-people", ["same"]) for n in range(spec)))


@asynccontextmanager
async def opened(folder: Path, **environment: str) -> AsyncIterator[Muster]:
    (folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "cases.yaml").write_text(SUITE, encoding="utf-8")
    (folder / "chain.yaml").write_text(CHAIN, encoding="utf-8")
    settings = load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin", **environment})
    async with open_muster(settings=settings) as m:
        yield m


async def begun(m: Muster) -> None:
    """Wait until there is a run."""
    while not await m.runs.list():
        await m.runs._store.changes.wait(1.0, m.runs._store.changes.commits)


async def questions(m: Muster, run: str, number: int = 1) -> list[OpenQuestion]:
    """Wait until so many questions are open."""
    while len(found := await m.runs.questions(run)) < number:
        await m.runs._store.changes.wait(1.0, m.runs._store.changes.commits)
    return list(found)


async def events_of(handle: RunHandle) -> list[Event]:
    return [event async for event in handle.events()]


async def test_what_a_person_writes_is_the_answer_of_ask(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        asking = asyncio.create_task(m.ask("me", "what is 6*7?", system="Be brief."))
        await begun(m)
        (question,) = await questions(m, "last")
        assert (question.key, question.agent) == ("ask", "me")
        assert question.prompt == "Be brief.\n\nwhat is 6*7?"
        outcome = await m.runs.answer("last", "42", sender="Ada")
        assert outcome.goes_on
        reply = await asking
        assert (reply.text, reply.cost) == ("42", 0)
        assert not await m.runs.questions("last")


async def test_an_answer_must_fit_the_schema_before_it_is_sent(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        asking = asyncio.create_task(m.ask("me", "how many?", schema=COUNT))
        await begun(m)
        await questions(m, "last")
        for wrong in ("three", '{"n": "three"}'):
            with pytest.raises(BadArgument, match="was not sent"):
                await m.runs.answer("last", wrong)
        assert len(await m.runs.questions("last")) == 1
        await m.runs.answer("last", '{"n": 3}')
        assert (await asking).data == {"n": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), ("\u200b\n", "empty"), ("x" * (MAX_ANSWER + 1), "the maximum is"), ("\ud800", "not UTF-8")],
)
async def test_what_cannot_be_an_answer_is_refused(tmp_path: Path, text: str, words: str) -> None:
    async with opened(tmp_path) as m:
        handle = await m.start("test-two-people", ["only"])
        await questions(m, handle.id)
        with pytest.raises(BadArgument, match=words):
            await m.runs.answer(handle.id, text)
        await m.runs.answer(handle.id, "fine")
        assert await handle.result() == ["fine"]


async def test_of_several_questions_the_answer_must_name_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        handle = await m.start("test-two-people", ["first", "with space"])
        await questions(m, handle.id, 2)
        with pytest.raises(BadArgument, match="waits for 2 answers") as caught:
            await m.runs.answer(handle.id, "yes")
        assert caught.value.suggestions == (
            f"muster answer {handle.id} --call first TEXT",
            f"muster answer {handle.id} --call 'with space' TEXT",
        )
        with pytest.raises(NotFound, match="no call under the key 'third'"):
            await m.runs.answer(handle.id, "yes", key="third")
        await m.runs.answer(handle.id, "two", key="with space")
        await m.runs.answer(handle.id, "one")
        assert await handle.result() == ["one", "two"]
        with pytest.raises(Conflict, match="completed and is not waiting for an answer"):
            await m.runs.answer(handle.id, "three")


async def test_a_client_that_sends_its_answer_again_answers_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        handle = await m.start("test-people-below", 1)
        await questions(m, handle.id)
        first = await m.runs.answer(handle.id, "yes", client_id="phone/1")
        assert (first.sent.key, first.root.id) == ("same", handle.id)
        again = await m.runs.answer(handle.id, "yes", client_id="phone/1")
        assert again.sent == first.sent
        with pytest.raises(Conflict, match="used for another signal"):
            await m.runs.answer(handle.id, "no", client_id="phone/1")
        assert await handle.result() == [["yes"]]
        assert (await m.runs.answer(handle.id, "yes", client_id="phone/1")).sent == first.sent


async def test_questions_of_children_are_answered_by_the_run_that_asks(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        handle = await m.start("test-people-below", 2)
        found = await questions(m, handle.id, 2)
        with pytest.raises(BadArgument, match="waits for 2 answers under the key 'same'") as caught:
            await m.runs.answer(handle.id, "yes", key="same")
        assert caught.value.suggestions == tuple(question.command for question in found)
        for number, question in enumerate(found):
            await m.runs.answer(question.run, f"answer {number}")
        assert sorted(cast(Any, await handle.result())) == [["answer 0"], ["answer 1"]]


async def test_signals_do_not_go_past_the_checks_of_an_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        handle = await m.start("test-two-people", ["only"])
        await questions(m, handle.id)
        with pytest.raises(BadArgument, match="is for answers of people"):
            await m.runs.send(handle.id, "answer/only", {"text": ""})
        await handle.cancel()


async def test_the_time_of_a_person_is_over_with_an_error_that_names_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        with pytest.raises(muster.RunFailed, match=r"agent .hasty., a person, did not answer within 0\.05 s") as caught:
            await m.ask("hasty", "quick!")
        assert TimedOut.code in str(caught.value.reason)


async def test_a_run_resumed_after_a_cancel_hears_the_answer_of_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        submitted = await m.submit("test-two-people", ["a", "b"])
        await m.worker().serve(until_idle=True)
        assert (await submitted.run()).state is RunState.WAITING
        outcome = await m.runs.answer(submitted.id, "to a", key="a")
        assert not outcome.goes_on, "no worker is alive"
        await m.runs.cancel(submitted.id)
        resumed = await m.resume(submitted.id)
        await questions(m, resumed.id)
        await m.runs.answer(submitted.id, "to b")  # by the old id
        assert await resumed.result() == ["to a", "to b"]


async def test_a_person_answers_and_judges_a_suite_and_it_is_replayed_without_them(tmp_path: Path) -> None:
    spec = muster.SuiteSpec(path=(str(tmp_path / "cases.yaml"),), agents=("me",), judge="me")
    async with opened(tmp_path) as m:
        plan = m.suites.plan(spec)
        assert (plan.all.calls, plan.all.most, plan.all.unbounded) == (2, 0, ())
        options = m.runs.options(name="graded", budget_usd="0.01", dispatch=Dispatch(mode=Mode.BATCH))
        handle = await m.suites.start(spec, options)
        (question,) = await questions(m, "graded")
        assert question.schema is None
        await m.runs.answer("graded", "42, please")
        (question,) = await questions(m, "graded")
        assert question.schema is not None
        with pytest.raises(BadArgument, match="was not sent"):
            await m.runs.answer("graded", "fine")
        await m.runs.answer("graded", json.dumps(VERDICT))
        await handle.result()
        report = await m.report("graded")
        assert report.ok
        assert (await handle.run()).spent.settled == 0

        source = await m.suites.source(replay="graded")
        replay = await m.suites.start(spec, m.runs.options(name="again"), origin=source.origin)
        assert (await replay.wait()).calls.reused == 2
        assert (await m.report("again")).ok

        keys = m.project.evidence.make_keys(tmp_path / "signing.key")
        await m.suites.export_evidence("graded", tmp_path / "graded.tar", tmp_path / "signing.key")
        assert m.project.evidence.verify(tmp_path / "graded.tar", keys.public).valid
        assert m.project.evidence.rescore(tmp_path / "graded.tar").same


async def test_a_run_moves_to_another_store_with_its_answers_and_open_questions(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    async with opened(tmp_path / "here") as m:
        submitted = await m.submit("test-two-people", ["a", "b"])
        await m.worker().serve(until_idle=True)
        await m.runs.answer(submitted.id, "to a", key="a")
        await m.worker().serve(until_idle=True)
        await m.runs.export(submitted.id, tmp_path / "run.jsonl")
    async with opened(tmp_path / "there") as m:
        await m.runs.import_(tmp_path / "run.jsonl")
        (question,) = await m.runs.questions(submitted.id)
        assert question.key == "b"
        await m.runs.answer(submitted.id, "to b")
        resumed = await m.resume(submitted.id)
        assert await resumed.result() == ["to a", "to b"]


async def test_a_person_does_a_step_of_a_chain_and_a_worker_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        spec = m.chains.spec(m.chains.load(tmp_path / "chain.yaml"))
        handle = await m.chains.submit(spec)
        await m.worker().serve(until_idle=True)
        assert (await handle.run()).state is RunState.WAITING
        (question,) = await m.runs.questions(handle.id)
        assert question.prompt == "what of a letter?"
        await m.runs.answer(handle.id, "too long")
        await m.worker().serve(until_idle=True)
        assert (await handle.run()).state is RunState.COMPLETED
        assert (await m.chains.progress(handle.id)).steps[-1].output == "too long"


async def test_a_person_is_given_no_tasks(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        with pytest.raises(BadArgument, match="'me' is a person; people cannot be given tasks"):
            await m.pool.tasks.submit(muster.TaskSpec(prompt="dig", agent="me"))


async def test_no_secret_of_an_answer_is_stored(tmp_path: Path) -> None:
    secret = "sk-test-0123456789-abcdef"
    async with opened(tmp_path, ANTHROPIC_API_KEY=secret) as m:
        handle = await m.start("test-two-people", ["only"])
        await questions(m, handle.id)
        await m.runs.answer(handle.id, f"the key is {secret}")
        await handle.wait()
        told = [str(event.data) for event in await events_of(handle)]
        stored = await m.runs.call(handle.id, "only")
        assert stored.entry.reply is not None
        assert secret not in stored.entry.reply.text + "".join(told)
    for file in (tmp_path / ".muster").iterdir():
        assert file.is_dir() or secret.encode() not in file.read_bytes()


VERIFY = "agents:\n  - {name: bugs, prompt: Look for mistakes., model: MODEL}\n"


async def verified_by(m: Muster, folder: Path, person: str, answer: str | None) -> ConcludedVerification:
    """Verify a file by a person, who answers unless the time is over before."""
    (folder / "verify.yaml").write_text(VERIFY.replace("MODEL", person), encoding="utf-8")
    (folder / "code.py").write_text("x = 1\n", encoding="utf-8")
    async with m.verify.prepare(folder, muster.FileSelection(paths=("code.py",))) as prepared:
        handle = await m.verify.start(prepared)
    if answer is not None:
        await questions(m, handle.id)
        await m.runs.answer(handle.id, answer)
    return await m.verify.conclude(await handle.wait())


async def test_a_person_verifies_code(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        done = await verified_by(m, tmp_path, "me", json.dumps({"findings": []}))
        assert done.report.summary.ok


async def test_code_that_a_person_did_not_look_at_in_time_is_not_verified(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        done = await verified_by(m, tmp_path, "hasty", None)
        assert not done.report.summary.ok


async def test_a_person_writes_the_cases_of_a_suite(tmp_path: Path) -> None:
    case = {"id": "adds", "description": "Adds.", "tags": ["smoke"], "messages": [{"role": "user", "content": "1+1?"}]}
    case |= {"output": [{"kind": "contains", "value": "2"}], "rubric": []}
    async with opened(tmp_path) as m:
        wanted = Generation.of(
            GenerationOrder(agent="me", count=1, skill="sums", description="Adds numbers.", dry_run=True)
        )
        handle = await m.suites.generate(wanted)
        (question,) = await questions(m, handle.id)
        assert question.schema is not None
        await m.runs.answer(handle.id, json.dumps({"cases": [case]}))
        made = m.suites.conclude_generation(wanted, await handle.wait())
        assert len(made.cases) == 1


async def test_a_person_is_given_no_tasks_of_a_fan_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        with pytest.raises(BadArgument, match="'me' is a person"):
            await m.pool.fan_out(FanOut(prompts=("a", "b"), agent="me"))
        assert not await m.pool.tasks.list()
