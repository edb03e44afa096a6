"""Battles and scale tests while they are played, and their end."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from muster.app import Muster
from muster.app.kinds import BATTLE, SCALE
from muster.app.views.battles import battle_view, scale_view, told_by
from muster.cli.battles.table import INDENT, decision_line, message_line, tell_battle, tell_scale
from muster.cli.drive import FreshEvents
from muster.cli.outcome import ReportedEnding
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.domain.batch import Batch
from muster.domain.call import Role
from muster.domain.run import Run

LINES = 8  # of a conversation that are shown while it goes on
MAX_LINE = 160  # characters


class BattleProgress:
    """Looks at a battle: its last messages and decisions, one line each."""

    def __init__(self, muster: Muster) -> None:
        self._muster, self._events = muster, FreshEvents(muster)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._turn = 0
        self._words = ""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        async for event in self._events.of(run):
            message, decision = told_by(event)
            if message is not None:
                self._turn += message.role is Role.ASSISTANT
                self._lines.append(message_line(message, MAX_LINE))
                self._words = ""
            elif decision is not None:
                self._words = f"{decision.source}: {decision.verdict}"
                self._lines.append(INDENT + decision_line(decision, MAX_LINE))
        usual = run_progress(run, on_wire, batches)
        return replace(
            usual,
            words=", ".join(part for part in (self._words, usual.words) if part),
            done=self._turn,
            total=self._muster.battles.limit_of(run),
            unit="replies",
            below=tuple(self._lines),
        )


class ScaleProgress:
    """Looks at a scale test: which battles are over, and how they ended."""

    def __init__(self, muster: Muster) -> None:
        self._muster = muster
        self._seen = -1
        self._state: tuple[int, int, str] = (0, 0, "")

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen; the battles are counted anew when one of them is over."""
        if run.last_seq != self._seen:
            self._seen = run.last_seq
            found = await self._muster.battles.scales.status(run.id)
            counts = ", ".join(f"{number} {name}" for name, number in found.counts.items() if number)
            self._state = len(found.ended), len(found.battles), counts
        done, total, words = self._state
        usual = run_progress(run, on_wire, batches)
        return replace(
            usual,
            words=", ".join(part for part in (words, usual.words) if part),
            done=done,
            total=total,
            unit="battles",
        )


BATTLES = ReportedEnding(
    kind=BATTLE,
    progress=BattleProgress,
    report=lambda muster, run: muster.battles.report(run),
    view=battle_view,
    tell=tell_battle,
    tell_report=lambda console, report, reference: tell_battle(console, report),
    closer="muster battle messages",
)
SCALES = ReportedEnding(
    kind=SCALE,
    progress=ScaleProgress,
    report=lambda muster, run: muster.battles.scales.report(run),
    view=scale_view,
    tell=tell_scale,
    tell_report=lambda console, report, reference: tell_scale(console, report),
    closer="muster report",
)
