"""Reports of battles and scale tests by the name of their format."""

import json

from muster.battles.kind import BATTLE, SCALE
from muster.battles.reports.html import battle_html, scale_html
from muster.battles.reports.json_report import battle_view, scale_view
from muster.battles.reports.markdown import battle_markdown, scale_markdown
from muster.battles.scale_summary import ScaleReport, summarize_scale
from muster.battles.summary import BattleReport, summarize_battle
from muster.domain.run import Run
from muster.reporting.runs import RunReport, by_format, text_report
from muster.store.base import Store
from muster.text.views import plain


def _battle_json(report: BattleReport) -> str:
    return json.dumps(plain(battle_view(report)), ensure_ascii=False, indent=2) + "\n"


def _scale_json(report: ScaleReport) -> str:
    return json.dumps(plain(scale_view(report)), ensure_ascii=False, indent=2) + "\n"


BATTLE_WRITERS = by_format(BATTLE, _battle_json, battle_markdown, battle_html)
SCALE_WRITERS = by_format(SCALE, _scale_json, scale_markdown, scale_html)


async def report_of_battle(store: Store, run: Run) -> RunReport[BattleReport]:
    """Sum up a battle."""
    return text_report(run, await summarize_battle(store, run), BATTLE_WRITERS)


async def report_of_scale(store: Store, run: Run) -> RunReport[ScaleReport]:
    """Sum up a scale test."""
    return text_report(run, await summarize_scale(store, run), SCALE_WRITERS)
