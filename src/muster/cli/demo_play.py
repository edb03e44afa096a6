"""The play of the demo in four acts: work, kill, resume, replay."""

import asyncio
from asyncio.subprocess import Process
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.app import open_muster
from muster.cli import demo_work
from muster.cli.demo_proof import Proof, prove
from muster.cli.demo_stage import DemoFailed, Stage, set_up
from muster.cli.driving import completed
from muster.cli.progress import Display
from muster.cli.sights import run_sight
from muster.domain.money import from_usd, show_usd, to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster

KILL_AFTER = 25
LOOK_SECONDS = 0.03
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the demo showed."""

    run: Run
    kept: int  # replies that were known when it was resumed
    proof: Proof
    replay: Run
    replay_requests: int

    @property
    def holds(self) -> bool:
        """Whether everything that the demo promises is so."""
        same = self.replay.result == self.run.result
        return self.proof.holds and self.replay_requests == 0 and same and self.run.calls.failed == 0

    def json(self) -> dict[str, Any]:
        """Give it as JSON."""
        return {
            "holds": self.holds,
            "calls": self.proof.calls,
            "reused": self.kept,
            "paid_by_audit": self.proof.paid,
            "uncertain": self.proof.uncertain,
            "digests": self.proof.digests,
            "cost_usd": to_usd(self.run.spent.billed),
            "uncertain_usd": to_usd(self.run.spent.uncertain),
            "replay_requests": self.replay_requests,
            "result": self.run.result,
        }


async def play(display: Display) -> Outcome:
    """Play it from beginning to end."""
    async with set_up() as stage, open_muster(settings=stage.settings) as muster:
        with display:
            display.tell("A rehearsal server stands in for the provider: no key is needed, nothing is spent.")
            await _work_and_kill(stage, muster, display)
            run, kept = await _resume(muster, display)
            before = await stage.audit()
            replay = await _replay(muster, run, display)
            after = await stage.audit()
        proof = await _prove(muster, run, after.by_digest)
        return Outcome(run=run, kept=kept, proof=proof, replay=replay, replay_requests=after.requests - before.requests)


async def _work_and_kill(stage: Stage, muster: "Muster", display: Display) -> None:
    """Act one and two: another process works, and is killed while calls are on the wire."""
    async with stage.child() as child:
        calls = len(demo_work.LETTERS) * demo_work.SAMPLES
        budget = show_usd(from_usd(demo_work.BUDGET))
        display.tell(f"Process {child.pid} begins a run of {calls} calls with a budget of {budget}.")
        run = await _until_in_full_swing(muster, child, display)
        child.kill()
        await child.wait()
        on_wire = run.calls.total - run.calls.done
        display.tell(
            f"SIGKILL: process {child.pid} is dead after {run.calls.done} replies, with {on_wire} calls on the wire."
        )


async def _until_in_full_swing(muster: "Muster", child: Process, display: Display) -> Run:
    end = asyncio.get_running_loop().time() + START_SECONDS
    while child.returncode is None and asyncio.get_running_loop().time() < end:
        found = [run for run in await muster.runs.list() if run.name == demo_work.NAME]
        if found:
            run = found[0]
            on_wire = run.calls.total - run.calls.done
            display.show(run_sight(run, on_wire))
            if run.calls.done >= KILL_AFTER and on_wire:
                return run
        await asyncio.sleep(LOOK_SECONDS)
    raise DemoFailed("the process that does the work did not get far enough to be killed")


async def _resume(muster: "Muster", display: Display) -> tuple[Run, int]:
    """Act three: this process goes on where the dead one was."""
    await muster.store.sweep()
    before = await muster.runs.find(demo_work.NAME)
    display.tell(
        f"Resuming: {before.calls.done} replies reused, {before.calls.uncertain} calls were uncertain "
        f"({show_usd(before.spent.uncertain)} at most)."
    )
    run = await _drive(muster, await muster.runs.prepare_resume(before.id), display)
    display.tell(f"Completed: {run.calls.done} of {run.calls.total} calls are answered.")
    return run, before.calls.done


async def _replay(muster: "Muster", run: Run, display: Display) -> Run:
    """Act four: everything again, from the journal alone."""
    display.tell("Replaying the finished run from its journal.")
    return await _drive(muster, await muster.runs.replay(run.id), display)


async def _drive(muster: "Muster", run: Run, display: Display) -> Run:
    handle = muster.runs.drive(run)
    waiting = asyncio.ensure_future(handle.wait())
    while not waiting.done():
        display.show(run_sight(await handle.run(), muster.runs.calls_on_wire))
        await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
    ended = await waiting
    display.show(run_sight(ended, 0), last=True)
    return completed(ended)


async def _prove(muster: "Muster", run: Run, paid: Any) -> Proof:
    details = await muster.runs.details(run.id, calls=run.calls.total)
    uncertain = [attempt.key for attempt in details.uncertain]
    return prove(paid, details.calls or (), uncertain, demo_work.AGENT.partition("/")[2])
