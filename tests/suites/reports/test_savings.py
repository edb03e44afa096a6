"""What the tier flex saved, in the reports of a suite."""

from pathlib import Path

from muster.app.base.costs import listed_price
from muster.domain.money import show_usd, to_usd
from muster.domain.run import RunState
from muster.sim.options import Options
from muster.suites.reports.json_report import FlexSavingView, suite_report_view
from muster.suites.reports.markdown import markdown
from muster.suites.reports.summary import summarize
from tests.suites.stage import JUDGE, a_case, a_suite, stage


async def test_reports_tell_what_flex_saved(tmp_path: Path) -> None:
    async with stage(tmp_path, judge=Options(price_of=listed_price)) as s:
        a_suite(tmp_path, a_case("one", "word " * 400), a_case("two"))
        run = await s.drive({"agents": [JUDGE]}, dispatch="flex")
        report = await summarize(await s.opened(run))
    assert run.state is RunState.COMPLETED
    [(name, saved)] = report.run.savings
    assert (name, saved) == ("flex", report.run.saving.flex_live_cost - run.spent.billed)
    assert suite_report_view(report).run.flex == FlexSavingView(calls=2, saved_usd=to_usd(saved))
    assert f"{show_usd(saved)} saved by flex" in markdown(report)
