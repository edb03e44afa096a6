"""Reports of battles and scale tests by the name of their format."""

import json
from collections.abc import Callable, Mapping
from typing import TextIO

from muster.battles.reports.html import battle_html, scale_html
from muster.battles.reports.json_report import battle_view, scale_view
from muster.battles.reports.markdown import battle_markdown, scale_markdown
from muster.battles.scale_summary import ScaleReport, summarize_scale
from muster.battles.summary import BattleReport, summarize_battle
from muster.domain.errors import BadArgument
from muster.domain.flaw import one_of
from muster.domain.run import Run
from muster.reporting.files import Redacting
from muster.reporting.runs import RunReport
from muster.store.base import Store
from muster.text.views import plain


def _battle_json(report: BattleReport) -> str:
    return json.dumps(plain(battle_view(report)), ensure_ascii=False, indent=2) + "\n"


def _scale_json(report: ScaleReport) -> str:
    return json.dumps(plain(scale_view(report)), ensure_ascii=False, indent=2) + "\n"


BATTLE_WRITERS: Mapping[str, Callable[[BattleReport], str]] = {
    "json": _battle_json,
    "markdown": battle_markdown,
    "html": battle_html,
}
SCALE_WRITERS: Mapping[str, Callable[[ScaleReport], str]] = {
    "json": _scale_json,
    "markdown": scale_markdown,
    "html": scale_html,
}


async def write_battle(report: BattleReport | ScaleReport, format_name: str, out: TextIO) -> None:
    """Write a report of a battle or a scale test to an open file."""
    if format_name not in BATTLE_WRITERS:
        raise BadArgument(f"the format of this report must be {one_of(tuple(BATTLE_WRITERS))}, not {format_name!r}")
    if isinstance(report, BattleReport):
        text = BATTLE_WRITERS[format_name](report)
    else:
        text = SCALE_WRITERS[format_name](report)
    Redacting(out).write(text)


async def report_of_battle(store: Store, run: Run) -> RunReport[BattleReport]:
    """Sum up a battle."""
    summary = await summarize_battle(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_battle(summary, name, out)

    return RunReport(run=run, summary=summary, formats=tuple(BATTLE_WRITERS), write=write)


async def report_of_scale(store: Store, run: Run) -> RunReport[ScaleReport]:
    """Sum up a scale test."""
    summary = await summarize_scale(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_battle(summary, name, out)

    return RunReport(run=run, summary=summary, formats=tuple(SCALE_WRITERS), write=write)
