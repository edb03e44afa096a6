"""The reports that a suite run is to leave behind, checked before anything is spent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster.cli.manner import Manner
from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from muster.cli.report_files import Wanted


def wanted_reports(given: Sequence[str], manner: Manner) -> "tuple[Wanted, ...]":
    """Read every FORMAT=FILE; only one report can go to standard output, and none beside an envelope."""
    from muster.cli.report_files import wanted_report

    wanted = tuple(wanted_report(one) for one in given)
    printed = [one for one in wanted if one.path is None]
    if len(printed) > 1 or (printed and manner.json):
        raise BadArgument(
            "standard output holds one report, and none beside --json",
            suggestions=("write it to a file: json=out.json",),
        )
    return wanted
