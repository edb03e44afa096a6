"""Councils as JSON."""

from collections.abc import Sequence
from typing import Any

from muster.app.councils import CouncilInspection, CouncilReport
from muster.app.views.suites import flaw_view
from muster.councils.reports.json_report import council_json
from muster.domain.entry import Signal

_TELLING = ("rounds", "open_round", "position_bias", "costs")  # lists that tell who said what


def council_view(report: CouncilReport) -> dict[str, Any]:
    """Return all that is known of a council as JSON."""
    return council_json(report)


def shared_council_view(report: CouncilReport, asked: Sequence[str]) -> dict[str, Any]:
    """Return a council as JSON for whoever may answer in it: nothing of what members said while persons may be asked.

    Names would tell whose candidates they weigh, and so would the past of members and how much each has written.
    """
    found = council_json(report) | {"withheld_for": list(asked)}
    return found | {"winner": None} | {key: [] for key in _TELLING} if asked else found


def signal_view(signal: Signal) -> dict[str, Any]:
    """Return a signal that was sent as JSON."""
    return {"channel": signal.channel, "seq": signal.seq, "payload": signal.payload}


def council_inspection_view(inspection: CouncilInspection) -> dict[str, Any]:
    """Return what is wrong in a council.yaml as JSON."""
    found = inspection.policy
    return {
        "file": inspection.file,
        "agents": [] if found is None else [member.name for member in found.members],
        "flaws": [flaw_view(flaw) for flaw in inspection.flaws],
    }
