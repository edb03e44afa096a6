"""The end of a run: what it leaves behind is written whatever it came to; the exit code says whether all is well."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from muster.cli.answering import leave
from muster.cli.driving import Sights, drive
from muster.cli.manner import Manner
from muster.cli.progress import display
from muster.cli.report_files import Wanted
from muster.cli.speech import answer, console, fail, fail_with, note
from muster.domain.errors import MusterError, NotFound
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster
    from muster.app.handle import RunHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to, as it is told."""

    ok: bool
    verdict: str
    data: dict[str, Any]
    closer: str  # the command that shows more of it
    tell: Callable[["Console"], None]
    again: tuple[str, ...] = ()  # the commands that run what did not pass once more


class Ending(Protocol):
    """How runs of one workload end."""

    def sights(self, muster: "Muster") -> Sights:
        """Look at a run while it is driven."""

    def require_places(self, muster: "Muster") -> None:
        """Refuse, before anything is spent, when what a run leaves behind by itself cannot be written."""

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""


async def drive_and_conclude(
    muster: "Muster", handle: "RunHandle", ending: Ending, wanted: tuple[Wanted, ...], manner: Manner
) -> int:
    """Drive a run to its end and report it; gives the exit code, and raises what stopped the run."""
    try:
        run = await drive(muster, handle, display(manner), ending.sights(muster))
    except MusterError as error:
        found = await _what_is_there(muster, await handle.run(), ending, wanted, manner)
        if found is None or not manner.json:
            raise
        return fail(manner, error, found.data)
    if run.is_detached:
        return leave(manner, run, await muster.runs.batches_of(run.id), await muster.runs.workers())
    return await conclude(muster, run, ending, wanted, manner)


async def conclude(
    muster: "Muster", run: Run, ending: Ending, wanted: tuple[Wanted, ...], manner: Manner, *, again: bool = False
) -> int:
    """Report a run that is completed; gives its exit code. With `again` it tells how to run what did not pass."""
    found = await ending.outcome(muster, run, wanted, manner)
    ways = found.again if again else ()
    over = run.overdraft
    if over is None:
        code = _tell(manner, found, wanted, ways)
        if ways and not manner.json:
            note(
                manner,
                "it is not resumed; to ask for what has no answer, or again for all that did not pass, type:"
                + "".join(f"\n  {way}" for way in ways),
            )
        return code
    if not manner.json:
        _tell(manner, found, wanted)
    return fail_with(manner, over, 1, found.data)


async def _what_is_there(
    muster: "Muster", run: Run, ending: Ending, wanted: tuple[Wanted, ...], manner: Manner
) -> Outcome | None:
    """Report a run that stopped: what it has done by then is not lost."""
    try:
        found = await ending.outcome(muster, run, wanted, manner)
    except NotFound:
        return None  # it had not begun
    if not manner.json:
        found.tell(console(stderr=_is_printed(wanted)))
    return found


def _tell(manner: Manner, found: Outcome, wanted: tuple[Wanted, ...], ways: tuple[str, ...] = ()) -> int:
    """Say how it ended; standard output belongs to a report that goes there."""
    if manner.json and not found.ok:
        told = {"code": "not_passed", "message": found.verdict, "suggestions": [*ways, found.closer]}
        return fail_with(manner, told, 1, found.data)
    if manner.json or not _is_printed(wanted):
        answer(manner, found.data, found.tell)
    elif not manner.quiet:
        found.tell(console(stderr=True))
    return 0 if found.ok else 1


def _is_printed(wanted: tuple[Wanted, ...]) -> bool:
    return any(one.path is None for one in wanted)
