"""`muster demo`: real work without a key: killed, resumed, not paid twice; then a suite, with failures to look at."""

import asyncio
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from rich.panel import Panel
from rich.table import Table

from muster.app import Muster, open_muster
from muster.app.runs.runs import require_completed
from muster.cli.demo import work
from muster.cli.demo.environment import DemoEnvironment, DemoFailed, set_up
from muster.cli.demo.examination import DemoSuite, examine
from muster.cli.line import Option
from muster.cli.service.serve import serve_until_stopped
from muster.cli.suites.table import tell_report
from muster.cli.terminal.display import Display, MutedDisplay, display
from muster.cli.terminal.output import CommonOptions, answer, fail_with, note
from muster.cli.terminal.progress import run_progress
from muster.domain.canonical import Json, digest
from muster.domain.entry import Entry, EntryKind
from muster.domain.money import from_usd, show_usd, to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console


def demo(
    common: CommonOptions,
    serve: Annotated[
        bool, Option("--serve", help="Afterwards serve the web page with the results of the suite, until stopped.")
    ] = False,
) -> int:
    """Run a demo without a key: a crash, a resume, and a suite."""
    outcome, found = asyncio.run(_perform(common))
    data = outcome.json() | {"suite": found.json()}
    if not outcome.holds or not found.holds:
        flaw = "cases of the suite ended otherwise than they should" if outcome.holds else "something was paid twice"
        told = {"code": "demo", "message": f"the proof does not hold: {flaw}", "suggestions": []}
        return fail_with(common, told, 1, data)
    answer(common, data, lambda console: _tell(console, outcome, found))
    if serve:
        asyncio.run(_serve(common, found))
    return 0


async def _serve(common: CommonOptions, found: DemoSuite) -> None:
    """Serve the store that the suite left, on a free port."""

    def tell(url: str) -> None:
        note(common, f"the page is at {url}/#/runs/{found.report.run.id}")

    async with open_muster(settings=found.settings) as muster:
        await serve_until_stopped(muster, common, "127.0.0.1", 0, tell)


async def _perform(common: CommonOptions) -> "tuple[DemoOutcome, DemoSuite]":
    return await play(_screen(common)), await examine(_screen(common))


def _screen(common: CommonOptions) -> Display:
    return MutedDisplay() if common.quiet or common.json else display(common)


def _tell(console: "Console", outcome: "DemoOutcome", found: DemoSuite) -> None:
    _tell_proof(console, outcome)
    console.print()
    tell_report(console, found.table, found.reference)
    console.print()
    console.print("`hasty` fails on purpose. What it said, and why that is not good enough:", soft_wrap=True)
    console.print(f"report: {found.file}", soft_wrap=True)
    console.print(f"page:   muster view {found.reference}", soft_wrap=True)
    console.print(f"suite:  {found.folder / 'cases.yaml'}", soft_wrap=True)
    console.print("next:   muster init my-agent   ·   muster ask sim/echo hello   ·   muster doctor", soft_wrap=True)


def _tell_proof(console: "Console", outcome: "DemoOutcome") -> None:
    proof, spent = outcome.proof, outcome.run.spent
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_row(str(proof.calls), "calls, every one answered")
    table.add_row(str(outcome.kept), "replies reused after the kill")
    table.add_row(str(proof.uncertain), "calls were on the wire when the process died: they may be paid, so they count")
    table.add_row(str(proof.paid), f"paid, says the server's audit; {proof.calls} + {proof.uncertain} are allowed")
    table.add_row(show_usd(spent.billed), f"spent, {show_usd(spent.uncertain)} more at most is uncertain")
    table.add_row(str(outcome.replay_requests), "requests made by the replay, with the same result")
    table.add_row("✓", f"for each of {proof.digests} different requests: paid ≤ calls + uncertain")
    console.print(Panel(table, title="paid once", title_align="left", border_style="green", expand=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """For every digest: paid ≤ calls + uncertain."""

    digests: int
    paid: int
    calls: int
    uncertain: int
    broken: tuple[str, ...] = ()  # digests for which it does not hold

    @property
    def holds(self) -> bool:
        """Return whether nothing was paid twice."""
        return not self.broken and self.digests > 0


def prove(paid: Mapping[str, int], entries: Iterable[Entry], uncertain_keys: Iterable[str], model: str) -> Proof:
    """Compare the audit with the journal, digest by digest."""
    names = {entry.key: _on_the_wire(entry, model) for entry in entries if entry.kind is EntryKind.CALL}
    calls = Counter(names.values())
    uncertain = Counter(names[key] for key in uncertain_keys)
    broken = tuple(name for name, count in paid.items() if count > calls[name] + uncertain[name])
    return Proof(
        digests=len(paid),
        paid=sum(paid.values()),
        calls=calls.total(),
        uncertain=uncertain.total(),
        broken=broken,
    )


def _on_the_wire(entry: Entry, model: str) -> str:
    """Name a call of the demo as the provider's audit does: by the body that it received."""
    request: dict[str, Any] = entry.request
    messages = [{"role": message["role"], "content": message["text"]} for message in request["messages"]]
    return digest({"model": model, "max_tokens": request["max_tokens"], "messages": messages})


KILL_AFTER = 25
LOOK_SECONDS = 0.03
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What the demo showed."""

    run: Run
    kept: int  # replies that were known when it was resumed
    proof: Proof
    replay: Run
    replay_requests: int

    @property
    def holds(self) -> bool:
        """Return whether everything that the demo promises is so."""
        same = self.replay.result == self.run.result
        return self.proof.holds and self.replay_requests == 0 and same and self.run.calls.failed == 0

    def json(self) -> dict[str, Json]:
        """Return it as JSON."""
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


async def play(display: Display) -> DemoOutcome:
    """Play it from beginning to end."""
    async with set_up() as demo, open_muster(settings=demo.settings) as muster:
        with display:
            display.tell("A simulated server stands in for the provider: no key is needed, nothing is spent.")
            await _work_and_kill(demo, muster, display)
            run, kept = await _resume(muster, display)
            before = await demo.audit()
            replay = await _replay(muster, run, display)
            after = await demo.audit()
        proof = await _prove(muster, run, after.by_digest)
        return DemoOutcome(
            run=run, kept=kept, proof=proof, replay=replay, replay_requests=after.requests - before.requests
        )


async def _work_and_kill(demo: DemoEnvironment, muster: Muster, display: Display) -> None:
    """Act one and two: another process works, and is killed while calls are on the wire."""
    async with demo.child() as child:
        calls = len(work.LETTERS) * work.SAMPLES
        budget = show_usd(from_usd(work.BUDGET))
        display.tell(f"Process {child.pid} begins a run of {calls} calls with a budget of {budget}.")
        run = await _until_in_full_swing(muster, child, display)
        child.kill()
        await child.wait()
        on_wire = run.calls.total - run.calls.done
        display.tell(
            f"SIGKILL: process {child.pid} is dead after {run.calls.done} replies, with {on_wire} calls on the wire."
        )


async def _until_in_full_swing(muster: Muster, child: Process, display: Display) -> Run:
    end = asyncio.get_running_loop().time() + START_SECONDS
    while child.returncode is None and asyncio.get_running_loop().time() < end:
        found = [run for run in await muster.runs.list() if run.name == work.NAME]
        if found:
            run = found[0]
            on_wire = run.calls.total - run.calls.done
            display.show(run_progress(run, on_wire))
            if run.calls.done >= KILL_AFTER and on_wire:
                return run
        await asyncio.sleep(LOOK_SECONDS)
    raise DemoFailed("the process that does the work did not get far enough to be killed")


async def _resume(muster: Muster, display: Display) -> tuple[Run, int]:
    """Act three: this process goes on where the dead one was."""
    await muster.store.sweep()
    before = await muster.runs.find(work.NAME)
    display.tell(
        f"Resuming: {before.calls.done} replies reused, {before.calls.uncertain} calls were uncertain "
        f"({show_usd(before.spent.uncertain)} at most)."
    )
    run = await _drive(muster, await muster.runs.prepare_resume(before.id), display)
    display.tell(f"Completed: {run.calls.done} of {run.calls.total} calls are answered.")
    return run, before.calls.done


async def _replay(muster: Muster, run: Run, display: Display) -> Run:
    """Act four: everything again, from the journal alone."""
    display.tell("Replaying the finished run from its journal.")
    return await _drive(muster, await muster.runs.replay(run.id), display)


async def _drive(muster: Muster, run: Run, display: Display) -> Run:
    handle = muster.runs.drive(run)
    waiting = asyncio.ensure_future(handle.wait())
    while not waiting.done():
        display.show(run_progress(await handle.run(), muster.runs.calls_on_wire))
        await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
    ended = await waiting
    display.show(run_progress(ended, 0), last=True)
    return require_completed(ended)


async def _prove(muster: Muster, run: Run, paid: Any) -> Proof:
    details = await muster.runs.details(run.id, calls=run.calls.total)
    uncertain = [attempt.key for attempt in details.uncertain]
    return prove(paid, details.calls or (), uncertain, work.AGENT.partition("/")[2])
