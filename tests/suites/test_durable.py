"""Suite runs that are stopped: nothing is read twice, nothing is paid twice, and errors are tried again."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.app.runs.handle import follow
from muster.domain.call import Reply, Request
from muster.domain.case import Status
from muster.domain.errors import Interrupted, InvalidRequest, MusterError, Unreachable
from muster.domain.money import Microdollars
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.suites.journal import results_key
from muster.suites.reports.run import open_suite_run
from muster.suites.reports.summary import summarize
from muster.suites.spec import read_spec
from muster.suites.values.verdict import CaseResult
from muster.suites.workload import suite
from tests.engine.house import House, Puppet, check_books, house, reply
from tests.suites.stage import Cases, a_case, a_judged_case, a_suite, a_verdict, error_of, results_of, stage, statuses

FAILS = {"output": [{"kind": "contains", "value": "never said"}]}


class Player:
    """An agent that echoes; it holds back what a test says, and fails as a test says."""

    def __init__(self, *, holds: str = "", fails: Mapping[str, MusterError] | None = None) -> None:
        self.holds, self.fails = holds, dict(fails or {})
        self.arrived, self.let_go = asyncio.Event(), asyncio.Event()
        self.puppet = Puppet(self._answer)

    @property
    def heard(self) -> list[str]:
        """What it was asked, in order."""
        return [request.messages[-1].text for request in self.puppet.asked]

    async def _answer(self, request: Request, n: int) -> Reply:
        text = request.messages[-1].text
        if text == self.holds:
            self.arrived.set()
            await self.let_go.wait()
        if text in self.fails:
            raise self.fails.pop(text)
        return reply(text)


def judging(*failures: MusterError) -> Puppet:
    """Make a judge that fails in these ways first, and is kind then."""

    async def answer(request: Request, n: int) -> Reply:
        if n <= len(failures):
            raise failures[n - 1]
        return reply(a_verdict())

    return Puppet(answer)


def the_cases(*names: str) -> list[Cases]:
    return [a_case(name, name) for name in names]


def spec_of(folder: Path, **rest: Any) -> dict[str, Any]:
    return {"path": [str(folder / "cases.yaml")], "agents": ["a"], **rest}


async def stop_in_the_middle(h: House, run: Run, player: Player, pages: int) -> Run:
    """Stop a run when so many results are kept and the next answer is on its way; that one still arrives."""
    driving = asyncio.create_task(h.engine.drive(run.id))
    await player.arrived.wait()
    await kept(h, run, pages)
    h.engine.stop_all(Interrupted("stop"), now=False)
    player.let_go.set()
    stopped = await driving
    assert stopped.state is RunState.INTERRUPTED
    return stopped


async def kept(h: House, run: Run, pages: int) -> None:
    """Wait until so many pages of results are kept."""
    seen = 0
    async for event in follow(h.store, run.id, 0, h.engine.sweep):
        seen += event.kind == "suite.cases"
        if seen == pages:
            return


def without_time(results: list[CaseResult]) -> list[tuple[Any, ...]]:
    return [(r.case, r.epoch, r.status, r.score, r.why, r.keys, r.judgements, r.cost) for r in results]


async def test_a_run_that_was_stopped_tells_what_was_answered_and_paid_and_judges_what_needs_no_judge(
    tmp_path: Path,
) -> None:
    judge = Player(holds="judge")
    a_suite(tmp_path, a_judged_case("first", "first"), *the_cases("two", "three"), a_case("no", "x", expected=FAILS))
    names = ("first", "two", "three", "x")
    answered = asyncio.Event()

    async def answer(request: Request, n: int) -> Reply:
        if n == len(names):
            answered.set()
        return replace(reply(request.messages[-1].text), cost=Microdollars(1000))

    async def hold(request: Request, n: int) -> Reply:
        judge.arrived.set()
        await judge.let_go.wait()
        raise InvalidRequest("stopped")

    async with house(tmp_path, a=Puppet(answer, 2000), judge=Puppet(hold)) as h:
        run = await h.create(suite, spec=spec_of(tmp_path, judge="judge"), concurrency=8)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asyncio.gather(answered.wait(), judge.arrived.wait())
        await calls_settled(h, run, 4)
        h.engine.stop_all(Interrupted("stop"), now=True)
        judge.let_go.set()
        stopped = await driving
        assert stopped.state is RunState.INTERRUPTED
        assert await results_of(h.store, stopped) == []  # the first case holds the others back
        report = await summarize(await open_suite_run(h.store, stopped))
        assert report.counts == {Status.SKIPPED: 1, Status.PASSED: 2, Status.FAILED: 1}
        assert (report.missing, report.answered, report.answered_cost) == (1, 1, 1000)
        assert report.subjects[0].stats.cost == 4000
        assert "1 answer not judged yet, for $0.001" in report.verdict
        assert "No case was run" not in report.verdict
        assert next(line.why for line in report.lines) == "it was answered, and is not judged yet"
        assert not report.ok


async def test_a_conversation_that_was_stopped_tells_how_many_turns_were_answered(tmp_path: Path) -> None:
    a_suite(tmp_path, a_case("talk", "one", input={"follow_ups": ["two", "three", "four", "five"]}))
    held, let_go = asyncio.Event(), asyncio.Event()

    async def answer(request: Request, n: int) -> Reply:
        if n == 3:
            held.set()
            await let_go.wait()
            raise InvalidRequest("stopped")
        return replace(reply("so"), cost=Microdollars(1000))

    async with house(tmp_path, a=Puppet(answer, 2000)) as h:
        run = await h.create(suite, spec=spec_of(tmp_path))
        driving = asyncio.create_task(h.engine.drive(run.id))
        await held.wait()
        h.engine.stop_all(Interrupted("stop"), now=True)
        let_go.set()
        report = await summarize(await open_suite_run(h.store, await driving))
        assert [line.why for line in report.lines] == ["2 of 5 turns answered"]
        assert "1 conversation not finished, for $0.0020; resume the run to go on." in report.verdict
        assert "not judged yet" not in report.verdict
        assert (report.answered, report.unfinished) == (1, 1)


async def calls_settled(h: House, run: Run, number: int) -> None:
    """Wait until so many calls have their replies in the store."""
    while True:
        entries = [entry async for entry in h.store.archive.entries(run.id)]
        if sum(entry.reply is not None for entry in entries) >= number:
            return
        await asyncio.sleep(0)


async def test_files_are_not_looked_at_after_the_first_call_has_left(tmp_path: Path) -> None:
    player = Player(holds="one")
    path = a_suite(tmp_path, *the_cases("one", "two"))
    async with house(tmp_path, a=player.puppet) as h:
        run = await h.create(suite, spec=spec_of(tmp_path))
        driving = asyncio.create_task(h.engine.drive(run.id))
        await player.arrived.wait()
        a_suite(tmp_path, *the_cases("three"))
        path.with_name("prompt.md").write_text("Too late.", encoding="utf-8")
        player.let_go.set()
        done = await driving
        assert statuses(await results_of(h.store, done)) == {"one": Status.PASSED, "two": Status.PASSED}
        assert {request.system for request in player.puppet.asked} == {""}


async def test_a_stopped_run_goes_on_without_its_file_and_pays_nothing_twice(tmp_path: Path) -> None:
    names = ("one", "two", "three", "four")
    cases = [*the_cases(*names[:3]), a_judged_case("four", "four")]
    player, judge = Player(holds="three"), judging()
    a_suite(tmp_path, *cases)
    async with house(tmp_path, a=player.puppet, judge=judge) as h:
        run = await h.create(suite, spec=spec_of(tmp_path, judge="judge", epochs=2), concurrency=1)
        await stop_in_the_middle(h, run, player, pages=4)
        (tmp_path / "cases.yaml").unlink()
        done = await h.engine.drive(run.id)
        assert (done.id, done.result) == (run.id, {"ok": True, "units": 8, "cases": 4, "counts": {"passed": 4}})
        assert sorted(player.heard) == sorted(names * 2)
        assert len(judge.asked) == 2
        await check_books(h.store, run.id)
        found = await results_of(h.store, done)
        a_suite(tmp_path, *cases)
        undisturbed = await h.drive(suite, spec=spec_of(tmp_path, judge="judge", epochs=2))
        assert without_time(await results_of(h.store, undisturbed)) == without_time(found)


async def test_an_error_is_tried_again_on_resume_and_reports_read_the_newer_page(tmp_path: Path) -> None:
    player = Player(holds="last", fails={"bad": InvalidRequest("not today")})
    a_suite(tmp_path, *the_cases("good", "bad", "last"))
    async with house(tmp_path, a=player.puppet) as h:
        run = await h.create(suite, spec=spec_of(tmp_path), concurrency=1)
        stopped = await stop_in_the_middle(h, run, player, pages=2)
        assert statuses(await results_of(h.store, stopped)) == {"good": Status.PASSED, "bad": Status.ERROR}
        done = await h.engine.drive(run.id)
        assert set(statuses(await results_of(h.store, done)).values()) == {Status.PASSED}
        assert done.result["counts"] == {"passed": 3}
        assert player.heard == ["good", "bad", "last", "bad"]
        tag = read_spec(run.spec).tag
        versions = [await h.store.journal.find(run.id, results_key(tag, 1, version)) for version in (1, 2, 3)]
        assert [version is not None for version in versions] == [True, True, False]


async def test_what_is_still_an_error_after_a_resume_is_not_kept_twice(tmp_path: Path) -> None:
    player = Player(holds="last", fails={"bad": InvalidRequest("not today")})
    a_suite(tmp_path, *the_cases("bad", "last"))
    async with house(tmp_path, a=player.puppet) as h:
        run = await h.create(suite, spec=spec_of(tmp_path), concurrency=1)
        await stop_in_the_middle(h, run, player, pages=1)
        player.fails["bad"] = InvalidRequest("not today")
        done = await h.engine.drive(run.id)
        assert statuses(await results_of(h.store, done)) == {"bad": Status.ERROR, "last": Status.PASSED}
        assert await h.store.journal.find(run.id, results_key(read_spec(run.spec).tag, 0, 2)) is None


async def test_a_judge_that_failed_is_asked_again_on_resume_and_the_agent_is_not(tmp_path: Path) -> None:
    player, judge = Player(holds="last"), judging(*[Unreachable("nobody there")] * 5)
    a_suite(tmp_path, a_judged_case("judged", "judged"), *the_cases("last"))
    async with house(tmp_path, a=player.puppet, judge=judge) as h:
        run = await h.create(suite, spec=spec_of(tmp_path, judge="judge"), concurrency=2)
        stopped = await stop_in_the_middle(h, run, player, pages=1)
        assert statuses(await results_of(h.store, stopped)) == {"judged": Status.UNJUDGED}
        done = await h.engine.drive(run.id)
        assert statuses(await results_of(h.store, done)) == {"judged": Status.PASSED, "last": Status.PASSED}
        assert (sorted(player.heard), len(judge.asked)) == (["judged", "last"], 6)


async def test_an_heir_has_the_cases_the_results_and_the_conversations_of_the_run_it_goes_on_with(
    tmp_path: Path,
) -> None:
    """A run that is over is resumed by another: that one's reports need nothing of the first."""
    player = Player(holds="last", fails={"bad": InvalidRequest("not today")})
    judge = judging(*[Unreachable("nobody there")] * 5)
    a_suite(tmp_path, a_judged_case("judged", "judged"), *the_cases("good", "bad", "last"))
    async with house(tmp_path, a=player.puppet, judge=judge) as h:
        run = await h.create(suite, spec=spec_of(tmp_path, judge="judge"), concurrency=2)
        stopped = await stop_in_the_middle(h, run, player, pages=3)
        await h.store.runs.cancel(run.id, h.clock.now())
        (tmp_path / "cases.yaml").unlink()
        heir = await h.engine.drive((await h.descend(stopped, Origin(run=run.id, reuse=Reuse.REPLIES))).id)
        found = await results_of(h.store, heir)
        assert {result.status for result in found} == {Status.PASSED}
        assert heir.result["counts"] == {"passed": 4}
        assert sorted(player.heard) == ["bad", "bad", "good", "judged", "last"]
        keys = [key for result in found for key in result.keys]
        assert all([await h.store.journal.find(heir.id, key) is not None for key in keys])
        assert await h.store.journal.find(heir.id, "suite/cases/0") is not None
        await check_books(h.store, heir.id)


async def test_a_suite_that_changed_while_it_was_read_in_is_not_mixed_with_what_it_was(tmp_path: Path) -> None:
    """The first page was kept and the reading broke off: the file may be mended after that page, and not before."""
    many = [a_case(f"{number:03}", "hello") for number in range(150)]
    changed = [a_case("000", "changed"), *many[1:]]
    async with stage(tmp_path) as s:
        a_suite(tmp_path, *many, name="a/cases.yaml")
        a_suite(tmp_path, a_case("000", "hello"), name="b/cases.yaml")  # the same id again, which ends the reading
        run = await s.run(path=str(tmp_path), agents=["sim/echo"])
        assert run.ended_reason == "bad_file"
        a_suite(tmp_path, *changed, name="a/cases.yaml")
        conflict = error_of(await s.go_on(run)).record()
        assert (conflict["code"], "changed after this run had begun" in conflict["message"]) == ("conflict", True)
        a_suite(tmp_path, *many, name="a/cases.yaml")
        a_suite(tmp_path, a_case("150", "hello"), name="b/cases.yaml")
        done = await s.go_on(run)
        assert done.result["counts"] == {"passed": 151}
