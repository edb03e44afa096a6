"""A council while it is held, and its end."""

from collections.abc import Collection, Sequence
from typing import Any

from muster.app import Muster
from muster.app.councils.councils import council_view
from muster.app.kinds import COUNCIL
from muster.cli.councils.table import support_lines, tell_council, tell_trace
from muster.cli.drive import FreshEvents
from muster.cli.outcome import ReportedEnding
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.domain.batch import Batch
from muster.domain.run import Run

MAX_NAMED = 6  # members that are named at once


class CouncilProgress:
    """Looks at a council: its round, who is still writing, and the support of the last round."""

    def __init__(self, muster: Muster) -> None:
        self._events = FreshEvents(muster)
        self._members: tuple[str, ...] = ()
        self._round, self._rounds, self._scored = 0, 0, 0
        self._phase = "propose"
        self._writing: set[str] = set()
        self._after = ""  # what is done when the rounds are over
        self._support: dict[str, float] = {}

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        async for event in self._events.of(run):
            self._take(event.kind, event.data)
        usual = run_progress(run, on_wire, batches)
        return ProgressState(
            title=usual.title,
            words=usual.words,
            activity=self._activity,
            done=self._scored,
            total=self._rounds or None,
            unit="rounds",
            waits=usual.waits,
            since=usual.since,
            below=tuple(support_lines(self._support)),
        )

    @property
    def _activity(self) -> str:
        if not self._writing:
            return self._after
        return f"round {self._round}, {self._phase}: {_named(self._writing)} writing"

    def _take(self, kind: str, data: Any) -> None:
        if kind == "council.round.started":
            self._members = tuple(data["members"])
            self._round, self._rounds = int(data["round"]), int(data["rounds"])
            self._phase, self._writing = "propose", set(self._members)
        elif kind in ("council.proposed", "council.evaluated", "council.abstained", "council.benched"):
            self._writing.discard(str(data["agent"]))
            if not self._writing and data["phase"] == "propose":
                self._phase, self._writing = "evaluate", set(self._members)
        elif kind == "council.scored":
            self._scored, self._support = int(data["round"]), dict(data["support"])
            self._writing = set()
        elif kind == "council.stopped":
            self._writing = set()
        elif kind == "council.answering":
            self._after = f"{data['agent']} writes the answer"
        elif kind == "council.comparing":
            self._after = f"{data['agent']} answers alone, to compare"
        elif kind == "council.weighing":
            self._after = f"the answers are compared: {_named(data['agents'])} weighing"


def _named(agents: Collection[str]) -> str:
    first, more = sorted(agents)[:MAX_NAMED], len(agents) - MAX_NAMED
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


COUNCILS = ReportedEnding(
    kind=COUNCIL,
    progress=CouncilProgress,
    report=lambda muster, run: muster.councils.report(run),
    view=council_view,
    tell=tell_council,
    tell_report=lambda console, report, reference: tell_trace(console, report),
    closer="muster trace",
)
