"""Councils: what is known of them, what is sent to them, and what is wrong with their files."""

from collections.abc import Sequence

from muster.app.councils.councils import CouncilInspection, CouncilReport
from muster.app.views.flaws import FlawView, flaw_view
from muster.councils.reports.json_report import CouncilView, council_view
from muster.domain.canonical import Json
from muster.domain.entry import Signal
from muster.text.views import View, replace

_TELLING = ("rounds", "open_round", "position_bias", "costs")  # lists that tell who said what


class SentSignalView(View):
    """A signal that was sent."""

    channel: str
    seq: int
    payload: Json


class CouncilInspectionView(View):
    """What is wrong in a council.yaml."""

    file: str
    agents: Sequence[str]
    flaws: Sequence[FlawView]


def shared_council_view(report: CouncilReport, asked: Sequence[str]) -> CouncilView:
    """Return a council for whoever may answer in it: nothing of what members said while persons may be asked.

    Names would tell whose candidates they weigh, and so would the past of members and how much each has written.
    """
    shared = replace(council_view(report), withheld_for=list(asked))
    return replace(shared, winner=None, **dict.fromkeys(_TELLING, ())) if asked else shared


def signal_view(signal: Signal) -> SentSignalView:
    """Return a signal that was sent."""
    return SentSignalView(channel=signal.channel, seq=signal.seq, payload=signal.payload)


def council_inspection_view(inspection: CouncilInspection) -> CouncilInspectionView:
    """Return what is wrong in a council.yaml."""
    policy = inspection.policy
    return CouncilInspectionView(
        file=inspection.file,
        agents=[] if policy is None else [member.name for member in policy.members],
        flaws=[flaw_view(flaw) for flaw in inspection.flaws],
    )
