"""Verifications that are stopped: nothing is read twice, nothing is paid twice, and what failed is tried again."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any

from muster.domain.call import Reply, Request
from muster.domain.errors import Interrupted, InvalidRequest, MusterError
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.verify.declaration.verification import Limits, Verification
from muster.verify.findings.journal import CLEARED, Ending, WaveReport, files_key, report_key
from muster.verify.reports.run import open_waves_run
from muster.verify.spec import stored
from muster.verify.workload import waves
from tests.engine.house import House, Puppet, check_books, house, reply
from tests.suites.stage import playing
from tests.verify.stage import (
    CLEAN,
    CODE,
    OPENAI,
    a_checker,
    a_model,
    a_report,
    a_reviewer,
    lasting,
    replying,
    said,
    stage,
)

SCORED = a_report(score=10)
SMALL = Limits(chunk_bytes=1_000)
NAMES = ("a.py", "b.py", "c.py", "d.py")


class Reader:
    """A model that finds nothing; it holds back what is asked about one file, and fails as a test says."""

    def __init__(self, *, holds: str = "", fails: MusterError | None = None) -> None:
        self.holds, self.fails = holds, fails
        self.arrived, self.let_go = asyncio.Event(), asyncio.Event()
        self.puppet = Puppet(self._answer)

    @property
    def heard(self) -> list[str]:
        """What it was asked about, in order: agent and file."""
        texts = [request.messages[0].text for request in self.puppet.asked]
        return [f"{text.partition('I am ')[2].partition('.')[0]} {_file(text)}" for text in texts]

    async def _answer(self, request: Request, n: int) -> Reply:
        text = request.messages[0].text
        if self.holds and _file(text) == self.holds and "I am auditor" in text:
            self.arrived.set()
            await self.let_go.wait()
        if self.fails is not None and _file(text) == "a.py":
            error, self.fails = self.fails, None
            raise error
        return reply(SCORED if "I am reviewer" in text else CLEAN)


def _file(text: str) -> str:
    found = re.search(r"<<<BEGIN FILE [0-9a-f]{32} (\S+) lines", text)
    assert found is not None
    return found[1]


def spec_of(folder: Path, **rest: Any) -> dict[str, Any]:
    """Write four files, each of which is a chunk, and have them verified in two waves."""
    root = folder / "code"
    root.mkdir(exist_ok=True)
    for name in NAMES:
        (root / name).write_text(f"# {name}\n" + CODE * 12, encoding="utf-8")
    verifiers = (a_model("auditor", model="a"), a_reviewer(model="a"))
    found = stored(Verification(root=str(root), files=NAMES, verifiers=verifiers, limits=SMALL, **rest))
    assert isinstance(found, dict)
    return found


async def stop_in_the_middle(h: House, run: Run, reader: Reader) -> Run:
    """Stop a run while an answer is on its way; that one still arrives."""
    driving = asyncio.create_task(h.engine.drive(run.id))
    await reader.arrived.wait()
    h.engine.stop_all(Interrupted("stop"), now=False)
    reader.let_go.set()
    stopped = await driving
    assert stopped.state is RunState.INTERRUPTED
    return stopped


async def reports_of(h: House, run: Run) -> list[WaveReport]:
    return lasting((await open_waves_run(h.store, run)).waves)


async def test_a_run_stopped_in_its_first_wave_goes_on_without_its_files_and_pays_nothing_twice(
    tmp_path: Path,
) -> None:
    reader = Reader(holds="c.py")
    async with house(tmp_path, a=reader.puppet) as h:
        spec = spec_of(tmp_path)
        run = await h.create(waves, spec=spec, concurrency=1)
        await stop_in_the_middle(h, run, reader)
        asked = len(reader.heard)
        assert 0 < asked < 5
        (tmp_path / "code" / "a.py").write_text("changed = True\n", encoding="utf-8")
        shutil.rmtree(tmp_path / "code")
        done = await h.engine.drive(run.id)
        assert done.result["passed"], await reports_of(h, done)
        assert sorted(reader.heard) == sorted(f"{who} {file}" for who in ("auditor", "reviewer") for file in NAMES)
        await check_books(h.store, run.id)
        again = await h.drive(waves, spec=spec_of(tmp_path))
        assert await reports_of(h, again) == await reports_of(h, done)
        texts = [request.messages[0].text for request in reader.puppet.asked]
        assert not [text for text in texts if "changed = True" in text]


async def test_a_call_that_failed_before_a_stop_is_made_again_after_it(tmp_path: Path) -> None:
    reader = Reader(holds="d.py", fails=InvalidRequest("not today"))
    async with house(tmp_path, a=reader.puppet) as h:
        run = await h.create(waves, spec=spec_of(tmp_path), concurrency=1)
        await stop_in_the_middle(h, run, reader)
        done = await h.engine.drive(run.id)
        assert done.result["passed"]
        assert reader.heard.count("auditor a.py") == 2


async def test_a_wave_that_has_its_report_is_not_judged_again(tmp_path: Path) -> None:
    """What failed in a wave stays as it was told, although the one that failed would answer now."""
    reader = Reader(fails=InvalidRequest("not today"))
    async with house(tmp_path, a=reader.puppet) as h:
        run = await h.drive(waves, spec=spec_of(tmp_path))
        assert (run.state, run.result["passed"]) == (RunState.COMPLETED, False)
        heir = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))).id)
        assert heir.result == run.result
        assert len(reader.heard) == 4


async def test_an_heir_has_the_files_and_the_reports_of_the_run_it_goes_on_with(tmp_path: Path) -> None:
    reader = Reader(holds="c.py")
    async with house(tmp_path, a=reader.puppet) as h:
        run = await h.create(waves, spec=spec_of(tmp_path), concurrency=1)
        stopped = await stop_in_the_middle(h, run, reader)
        await h.store.runs.cancel(run.id, h.clock.now())
        shutil.rmtree(tmp_path / "code")
        heir = await h.engine.drive((await h.descend(stopped, Origin(run=run.id, reuse=Reuse.REPLIES))).id)
        assert heir.result["passed"]
        assert len(reader.heard) == len(set(reader.heard)) == 8
        opened = await open_waves_run(h.store, heir)
        assert [source.path async for source in opened.sources()] == list(NAMES)
        keys = [key for wave in opened.waves for agent in wave.agents for key in agent.keys]
        assert all([await h.store.journal.find(heir.id, key) is not None for key in keys])
        await check_books(h.store, heir.id)


async def test_files_that_changed_while_they_were_read_in_are_not_mixed(tmp_path: Path) -> None:
    """A page was kept and the reading broke off: what is on that page may not be another when it is read again."""
    big = {f"f{number}.py": f"# {number}\n" + CODE * 5_000 for number in range(4)}
    async with stage(tmp_path, files=big) as s:
        spec = s.spec(a_model("auditor"), files=(*s.files, "late.py"))
        run = await s.drive(spec)
        assert run.ended_reason == "bad_file"
        s.write(late=CODE, f0=CODE)
        run = await s.go_on(run)
        assert (run.ended_reason, s.anthropic.audit.requests) == ("conflict", 0)
        s.write(f0=big["f0.py"])
        run = await s.go_on(run)
        assert run.result["passed"]


async def test_a_replay_asks_nobody_runs_nothing_and_clears_nothing(tmp_path: Path) -> None:
    script = replying(auditor=a_report(said(severity="low")), reviewer=SCORED)
    async with stage(tmp_path, script) as s:
        s.mark("one", "a.py")
        checker = a_checker("lint", "open('count', 'a').write('x')", wave=2)
        run = await s.verify(a_model("auditor"), checker, a_reviewer())
        assert run.result["passed"]
        calls, found = s.anthropic.audit.calls, await s.waves(run)
        marker = s.mark("one", "a.py")
        (s.root / "a.py").unlink()
        replayed = await s.again(await s.muster.runs.replay(run.id))
        assert (replayed.result, await s.waves(replayed)) == (run.result, found)
        assert (s.anthropic.audit.calls, (s.root / "count").read_text(), marker.exists()) == (calls, "x", True)


async def test_a_fork_from_a_wave_pays_only_for_that_wave(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor"), a_model("other"), a_reviewer())
        key = (await s.agents(run))["reviewer"].keys[0]
        forked = await s.again(await s.muster.runs.fork(run.id, key))
        assert lasting(await s.waves(forked)) == lasting(await s.waves(run))
        assert s.anthropic.audit.calls == 4
        forked = await s.again(await s.muster.runs.fork(run.id, report_key(1)))
        assert forked.result["passed"]
        # The calls of the first wave are older than its report, so they are taken over; the second wave is not.
        assert s.anthropic.audit.calls == 5
        assert await s.muster._backend.store.journal.find(forked.id, files_key(0)) is not None


async def test_a_budget_that_ends_in_the_middle_of_a_wave_stops_it_and_an_heir_pays_only_the_rest(
    tmp_path: Path,
) -> None:
    files = {f"f{number}.py": f"# {number}\n" + CODE * 60 for number in range(12)}
    async with stage(tmp_path, replying(reviewer=SCORED), files=files) as s:
        limits = Limits(chunk_bytes=5_000)
        agents = [a_model("auditor", max_tokens=100), a_reviewer(model=OPENAI, max_tokens=100)]
        order = {"budget_usd": "0.0025", "concurrency": 1}
        run = await s.verify(*agents, limits=limits, order=order)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
        paid = s.anthropic.audit.calls
        assert 0 < paid < 12
        assert (await s.report(run)).ok is False
        shutil.rmtree(s.root)
        heir = await s.go_on(run, budget_usd="1")
        assert (heir.id != run.id, heir.result["passed"]) == (True, True)
        assert (s.anthropic.audit.calls, set(s.anthropic.audit.by_digest.values())) == (12, {1})
        assert s.openai.audit.calls == 12
        assert heir.calls.reused == paid


async def test_what_was_cleared_is_remembered(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        marker = s.mark("one", "a.py")
        run = await s.verify(a_model("auditor"))
        entry = await s.muster._backend.store.journal.find(run.id, CLEARED)
        assert entry is not None
        assert entry.value == [str(marker)] == list((await s.report(run)).cleared)


async def test_an_agent_that_was_broken_can_be_asked_again_in_a_fork(tmp_path: Path) -> None:
    """The model talked nonsense in the first run; the fork asks it anew, and nobody else."""
    bad = playing({"answer": "no"})
    async with stage(tmp_path, openai=bad) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor"), a_model("other", model=OPENAI))
        other = (await s.agents(run))["other"]
        assert (run.result["passed"], other.ending) == (False, Ending.BROKEN)
        forked = await s.again(await s.muster.runs.fork(run.id, other.keys[0]))
        assert (forked.result["passed"], s.anthropic.audit.calls, s.openai.audit.calls) == (False, 1, 4)


async def test_many_small_files_are_kept_in_pages_and_all_of_them_are_read(tmp_path: Path) -> None:
    files = {f"f{number:04}.py": f"x = {number}\n" for number in range(1_100)}
    async with stage(tmp_path, files=files) as s:
        run = await s.verify(a_model("auditor", include=("f0*",)), a_model("other"))
        read = await open_waves_run(s.muster._backend.store, run)
        assert run.result["passed"]
        assert (len(read.snapshot.files), read.snapshot.pages) == (1_100, 2)
        assert [source.path async for source in read.sources()] == sorted(files)
