"""One run with as much of its calls and events as was asked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.cli.clean import clean
from muster.cli.pooled import Pooled, pooled
from muster.cli.portrait import entry_json, event_json, event_line, run_json
from muster.domain.entry import AttemptState, Entry, EntryKind
from muster.domain.event import Event
from muster.domain.money import to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeup:
    """A run, and what else was asked for; None was not asked for."""

    run: Run
    pooled: Pooled
    calls: list[Entry] | None = None
    uncertain: tuple[Any, ...] = ()  # attempts
    events: list[Event] | None = None

    def json(self) -> dict[str, Any]:
        """Give it as JSON."""
        found = run_json(self.run) | self.pooled.json()
        if self.calls is not None:
            found["call_list"] = [entry_json(entry) for entry in self.calls]
            found["calls_left_out"] = self.left_out
            found["uncertain_attempts"] = [
                {"key": attempt.key, "attempt": attempt.n, "cost_usd": to_usd(attempt.cost), "error": attempt.error}
                for attempt in self.uncertain
            ]
        if self.events is not None:
            found["events"] = [event_json(event) for event in self.events]
        return found

    @property
    def left_out(self) -> int:
        """How many calls are not listed."""
        return max(0, self.run.calls.total - len(self.calls or ()))

    def tell(self, console: "Console") -> None:
        """Draw it."""
        from muster.cli.run_panel import run_panel
        from muster.cli.tables import attempts_table, calls_table

        console.print(run_panel(self.run, self.pooled))
        if self.calls is not None:
            console.print(calls_table(self.calls, console.width))
            if self.left_out:
                console.print(f"… and {self.left_out} more calls; all of them are in: muster runs export {self.run.id}")
        if self.uncertain:
            console.print(attempts_table(self.uncertain))
        for event in self.events or ():
            console.print(clean(event_line(event)), soft_wrap=True)


async def look(muster: "Muster", reference: str, *, calls: int, events: int) -> Closeup:
    """Read a run and as many of its calls and events."""
    run = await muster.find(reference)
    held = await pooled(muster, run)
    if not calls:
        return Closeup(run=run, pooled=held, events=await _events(muster, run, events))
    return Closeup(
        run=run,
        pooled=held,
        calls=await _calls(muster, run, calls),
        uncertain=tuple(await muster.store.archive.attempts(run.id, (AttemptState.UNCERTAIN,)))[:calls],
        events=await _events(muster, run, events),
    )


async def _calls(muster: "Muster", run: Run, most: int) -> list[Entry]:
    found: list[Entry] = []
    async for entry in muster.store.archive.entries(run.id):
        if entry.kind is EntryKind.CALL:
            found.append(entry)
        if len(found) == most:
            break
    return found


async def _events(muster: "Muster", run: Run, most: int) -> list[Event] | None:
    if not most:
        return None
    return list(await muster.store.events.read(run.id, max(0, run.last_seq - most), most))
