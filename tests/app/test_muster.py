"""An open Muster, as a Python program uses it."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

import muster
from muster.domain.errors import (
    BadArgument,
    BadConfiguration,
    BadFile,
    Conflict,
    Interrupted,
    NotFound,
    Overdraft,
    RunFailed,
)
from muster.domain.run import RunState
from muster.settings import Settings, load_settings


@muster.workload("test-letters")
async def letters(ctx: muster.Context, spec: Any) -> Any:
    async def one(i: int, letter: str) -> str:
        return (await ctx.call(spec["agent"], letter, key=f"letter/{i}")).text

    return [text async for text in ctx.map(one, spec["letters"])]


def settings(folder: Path) -> Settings:
    return load_settings(folder / "home", folder=folder, environment={})


SPEC = {"agent": "sim/echo", "letters": ["a", "b", "c"]}


async def test_a_question_is_answered(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        reply = await m.ask("sim/echo", "hello")
        assert (reply.text, reply.cost, reply.attempt) == ("hello", 0, 1)


async def test_a_run_gives_its_events_and_its_result(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC, budget_usd=0.5, name="nightly")
        kinds = [event.kind async for event in run.events()]
        assert kinds[0] == "run.created"
        assert kinds[-1] == "run.completed"
        assert await run.result() == ["a", "b", "c"]
        assert (
            (await m.runs.find("nightly")).id
            == (await m.runs.find(run.id[:12])).id
            == (await m.runs.find("last")).id
            == run.id
        )


async def test_an_answer_over_its_budget_is_raised_and_kept(tmp_path: Path) -> None:
    answer = 'async def answer(request):\n    return {"text": request.messages[-1].text, "cost_usd": 7.5}\n'
    (tmp_path / "dear_agent.py").write_text(answer, encoding="utf-8")
    (tmp_path / "muster.toml").write_text('[agents.dear]\nkind = "python"\nfunction = "dear_agent:answer"\n')
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(Overdraft, match=r"\$7\.50 of \$1\.00 is spent") as asked:
            await m.ask("dear", "hello", budget_usd=1)
        assert asked.value.result.text == "hello"
        run = await m.start("test-letters", {"agent": "dear", "letters": ["a"]}, budget_usd=1)
        with pytest.raises(Overdraft) as started:
            await run.result()
        assert started.value.result == ["a"]


async def test_once_told_to_stop_it_starts_and_resumes_nothing(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", {**SPEC, "agent": "sim/fail"}, name="nightly")
        await run.wait()
        m.stop(Interrupted("told to stop"), now=False)
        for starting in (m.start("test-letters", SPEC), m.resume("nightly"), m.ask("sim/echo", "hello")):
            with pytest.raises(Interrupted, match="told to stop"):
                await starting
        assert len(await m._backend.store.runs.roots(limit=9)) == 1


async def test_a_failed_run_raises_with_its_reason_and_can_be_resumed_by_name(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", {**SPEC, "agent": "sim/fail"}, name="nightly")
        with pytest.raises(RunFailed) as caught:
            await run.result()
        assert caught.value.reason == "invalid_request"
        again = await m.resume("nightly")
        assert again.id != run.id


async def test_replay_and_fork_through_the_app(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC)
        result = await run.result()
        replayed = m.runs.drive(await m.runs.replay(run.id))
        assert await replayed.result() == result
        forked = m.runs.drive(await m.runs.fork(run.id, "letter/1"))
        assert await forked.result() == result
        assert (await forked.run()).calls.reused == 1
        with pytest.raises(NotFound, match="letter/9"):
            await m.runs.fork(run.id, "letter/9")
        assert await (await m.resume(run.id)).result() == result


async def test_a_run_survives_its_program(tmp_path: Path) -> None:
    """Closing in the middle interrupts the run; the next program goes on with it."""
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", {**SPEC, "agent": "sim/slow"}, name="slow")
        async for event in run.events():
            if event.kind == "run.started":
                break
    async with muster.open(settings=settings(tmp_path)) as m:
        found = await m.runs.find("slow")
        assert (found.id, found.state) == (run.id, RunState.INTERRUPTED)
        again = await m.resume("slow")
        assert again.id == run.id
        assert await again.result() == ["a", "b", "c"]


async def test_submitted_work_waits_for_a_worker(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.submit("test-letters", SPEC)
        assert (await run.run()).state is RunState.QUEUED
        worker = asyncio.create_task(
            m.worker(most=1, on_end=lambda run: None, on_error=lambda run, error: None).serve(until_idle=True)
        )
        assert await run.result() == ["a", "b", "c"]
        await worker


async def test_a_run_can_be_canceled_from_its_handle(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", {**SPEC, "agent": "sim/slow"})
        await run.cancel()
        assert (await run.run()).state is RunState.CANCELED


async def test_a_run_that_was_canceled_can_be_canceled_again_and_one_that_ended_cannot(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.submit("test-letters", SPEC)
        await m.runs.cancel(run.id)
        events = await m.runs.events(run.id)
        assert (await m.runs.cancel(run.id)).state is RunState.CANCELED
        assert await m.runs.events(run.id) == events
        ended = await m.start("test-letters", SPEC)
        await ended.result()
        with pytest.raises(Conflict, match="nothing to cancel"):
            await m.runs.cancel(ended.id)


@pytest.mark.parametrize("budget", [0, -1, "0", "many", float("nan")])
async def test_a_budget_that_is_none_is_refused_before_anything_is_stored(tmp_path: Path, budget: Any) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadArgument):
            await m.start("test-letters", SPEC, budget_usd=budget)
        assert await m._backend.store.runs.select() == []


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"timeout": 0}, {"timeout": -1.0}])
async def test_wrong_numbers_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadArgument):
            await m.start("test-letters", SPEC, **wrong)


async def test_references_that_fit_nothing_or_too_much_are_told(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(NotFound, match="no runs yet"):
            await m.runs.find("last")
        for _ in range(2):
            await (await m.start("test-letters", SPEC)).result()
        with pytest.raises(BadArgument, match="matches 2 runs"):
            await m.runs.find("1")
        with pytest.raises(NotFound):
            await m.runs.find("zzz")


async def test_an_unknown_workload_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadConfiguration, match="unknown workload 'nothing'"):
            await m.start("nothing", {})
        assert await m._backend.store.runs.select() == []


async def test_a_module_of_workloads_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text('[workloads]\nimport = ["no_such_module_of_mine"]\n')
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadConfiguration, match="no_such_module_of_mine cannot be imported"):
            await m.start("not-registered-here", {})
        assert await m._backend.store.runs.select() == []


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
async def test_an_exported_run_replays_in_another_store(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC, name="nightly")
        result = await run.result()
        assert (await m.runs.export(run.id, file))[1] == 3
    (tmp_path / "other").mkdir()
    async with muster.open(settings=settings(tmp_path / "other")) as m:
        imported = await m.runs.import_(file)
        assert (imported.id, imported.result) == (run.id, result)
        assert await m.runs.drive(await m.runs.replay("nightly")).result() == result
        with pytest.raises(Conflict, match="already"):
            await m.runs.import_(file)


async def test_a_damaged_export_is_refused_and_imports_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC)
        await run.result()
        await m.runs.export(run.id, file)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    damaged = {
        "cut short": b"".join(lines[:-1]),
        "was changed": whole.replace(b'"text":"b"', b'"text":"x"'),
        "goes on after": whole + lines[1],
        "not an exported run": b"hello\n" + whole,
        "a version": whole.replace(b'{"muster":1', b'{"muster":99'),
        "cut in a line": whole[: len(whole) // 2],
        "nothing": b"",
    }
    (tmp_path / "other").mkdir()
    async with muster.open(settings=settings(tmp_path / "other")) as m:
        for content in damaged.values():
            file.write_bytes(content)
            with pytest.raises(BadFile, match=r"run\.jsonl"):
                await m.runs.import_(file)
        with pytest.raises(NotFound):
            await m.runs.import_(tmp_path / "nowhere")
        assert await m._backend.store.runs.select() == []
        file.write_bytes(whole)
        assert (await m.runs.import_(file)).id == run.id


async def test_an_interrupted_import_can_be_done_again(tmp_path: Path) -> None:
    """Entries come before the run: a half-done import shows no run and does not stand in the way."""
    file = tmp_path / "run.jsonl"
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC)
        await run.result()
        await m.runs.export(run.id, file)
        entries = [entry async for entry in m._backend.store.archive.entries(run.id)]
    (tmp_path / "other").mkdir()
    async with muster.open(settings=settings(tmp_path / "other")) as m:
        await m._backend.store.archive.restore_entries(entries[:2])
        with pytest.raises(NotFound):
            await m.runs.find(run.id)
        await m.runs.import_(file)
        assert [entry async for entry in m._backend.store.archive.entries(run.id)] == entries


@pytest.mark.parametrize(
    "wrong", [{"spec": {"x": object()}}, {"concurrency": 2**70}, {"name": "last"}, {"timeout": float("nan")}]
)
async def test_what_cannot_be_stored_is_refused_before_anything_is(tmp_path: Path, wrong: dict[str, Any]) -> None:
    spec = wrong.pop("spec", SPEC)
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadArgument):
            await m.start("test-letters", spec, **wrong)
        assert await m._backend.store.runs.select() == []


async def test_last_is_found_behind_many_children(tmp_path: Path) -> None:
    @muster.workload("test-parent")
    async def parent(ctx: muster.Context, spec: Any) -> Any:
        for i in range(105):
            await ctx.child(f"c{i}", "test-letters", {"agent": "sim/echo", "letters": []})

    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-parent", None)
        await run.result()
        assert (await m.runs.find("last")).id == run.id


async def test_an_export_is_private_and_replaces_only_plain_files(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-letters", SPEC)
        await run.result()
        await m.runs.export(run.id, tmp_path / "run.jsonl")
        assert (tmp_path / "run.jsonl").stat().st_mode & 0o777 == 0o600
        (tmp_path / "link").symlink_to(tmp_path / "run.jsonl")
        for place in (tmp_path / "link", tmp_path, Path(), Path("-")):
            with pytest.raises(BadArgument, match=r"not a (regular )?file|is a folder"):
                await m.runs.export(run.id, place)


async def test_an_exported_run_that_is_not_completed_brings_the_replies_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    async with muster.open(settings=settings(tmp_path)) as m:
        first = await m.start("test-letters", SPEC)
        await first.result()
        fork = await m.runs.fork(first.id, "letter/2")
        with pytest.raises(Conflict, match="may still need"):
            await m.runs.delete([first.id])
        await m.runs.export(fork.id, file)
    (tmp_path / "other").mkdir()
    async with muster.open(settings=settings(tmp_path / "other")) as m:
        imported = await m.runs.import_(file)
        assert imported.id == fork.id
        handle = m.runs.drive(imported)
        await handle.result()
        assert (await handle.run()).calls.reused == 2


async def test_a_secret_in_a_name_or_a_key_never_reaches_the_store(tmp_path: Path) -> None:
    secret = "sk-secret-0123456789"

    @muster.workload("test-leak")
    async def leak(ctx: muster.Context, spec: Any) -> Any:
        await ctx.call("sim/echo", "hi", key=f"k/{secret}")

    chosen = load_settings(tmp_path / "home", folder=tmp_path, environment={"OPENAI_API_KEY": secret})
    async with muster.open(settings=chosen) as m:
        run = await m.start("test-leak", None, name=f"n-{secret}")
        with pytest.raises(RunFailed, match="secret"):
            await run.result()
    assert all(secret.encode() not in file.read_bytes() for file in (tmp_path / "home").iterdir())


@pytest.mark.parametrize(
    ("workload", "spec"),
    [
        ("ask", {"agent": "sim/echo"}),
        ("ask", {"agent": "sim/echo", "prompt": "hello", "promtp": "hello"}),
        ("ask", ["sim/echo", "hello"]),
        ("fix", {"root": "."}),
        ("generate", {"agent": "sim/echo", "count": 0, "skill": "greeter"}),
        ("suite", {}),
        ("waves", {"files": ["a.py"]}),
        ("test-checked", {"count": "many"}),
    ],
)
@pytest.mark.parametrize("how", ["start", "submit"])
async def test_a_spec_that_its_workload_refuses_is_refused_before_anything_is_stored(
    tmp_path: Path, how: str, workload: str, spec: Any
) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadArgument, match="not a valid"):
            await getattr(m, how)(workload, spec)
        assert await m.runs.list() == []


@muster.workload("test-checked", check=lambda spec: int(spec["count"]))
async def checked(ctx: muster.Context, spec: Any) -> Any:
    return int(spec["count"])


async def test_a_spec_that_its_workload_takes_is_run(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        assert await (await m.start("test-checked", {"count": "3"})).result() == 3
        asked = await m.start("ask", {"agent": "sim/echo", "prompt": "hi"})
        assert cast(Any, await asked.result())["text"] == "hi"


async def test_a_spec_of_a_workload_that_only_workers_know_is_left_to_them(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        assert (await (await m.submit("elsewhere", {})).run()).state is RunState.QUEUED


WRONG: dict[str, Any] = {
    "no tokens": lambda m: m.ask("sim/echo", "hello", max_tokens=-4),
    "tokens as text": lambda m: m.ask("sim/echo", "hello", max_tokens="4"),
    "an empty prompt": lambda m: m.ask("sim/echo", "  "),
    "no prompt": lambda m: m.ask("sim/echo", None),
    "half of a character": lambda m: m.ask("sim/echo", "\ud800"),
    "an agent that is a number": lambda m: m.ask(5, "hello"),
    "an empty prompt as a spec": lambda m: m.start("ask", {"agent": "sim/echo", "prompt": ""}),
    "one tag instead of a list": lambda m: m.start("test-letters", SPEC, tags="mail"),
    "a name that is a number": lambda m: m.start("test-letters", SPEC, name=7),
    "a timeout that is a text": lambda m: m.start("test-letters", SPEC, timeout="a"),
    "a reference that is a number": lambda m: m.runs.find(5),
    "an unknown state of runs": lambda m: m.runs.list(("bogus",)),
    "an unknown state of batches": lambda m: m.batches.list(("zz",)),
    "fewer than no runs": lambda m: m.runs.list((), -3),
    "a moment that is a text": lambda m: m.batches.stats("7d"),
    "another moment that is a text": lambda m: m.verify.metrics("7d"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_what_makes_no_sense_is_a_bad_argument_and_stores_nothing(tmp_path: Path, wrong: Any) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadArgument):
            await wrong(m)
        assert await m.runs.list() == []


async def test_a_question_to_nobody_is_refused_before_anything_is_stored_however_it_is_started(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(BadConfiguration):
            await m.start("ask", {"agent": "nope/x", "prompt": "hello"})
        assert await m.runs.list() == []


async def test_a_suite_that_is_not_there_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        with pytest.raises(NotFound):
            await m.suites.start(muster.SuiteSpec(path=(str(tmp_path / "nope"),), agents=("sim/echo",)))
        assert await m.runs.list() == []
