"""`muster verify plan`: what a verification would do and cost; spends nothing and stores nothing."""

import shlex
from typing import TYPE_CHECKING

from muster.app import Muster
from muster.app.verify.plan import PlannedAgent, VerifyPlan
from muster.app.verify.request import Prepared, ordered_dispatch
from muster.app.views.errors import some_left_out
from muster.app.views.verify import verify_plan_view
from muster.cli.session import with_muster
from muster.cli.suites.plan import bound_words, most_words, usd_of
from muster.cli.terminal.output import CommonOptions, answer, clean
from muster.cli.terminal.table import Column, fitted
from muster.cli.verify.options import VerifyPlanArguments
from muster.cli.verify.order import request_of, require_sending
from muster.cli.verify.words import extent, redactions, tell_nothing
from muster.domain.dispatch import Mode
from muster.settings import parse_budget

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


WIDE, NARROW = 24, 16  # columns for the names of agents, and for whom they ask


MIN_MISSED = ("calls\nat most", "tokens", "files", "asks", "calls", "wave", "about,\nat least")


def plan(common: CommonOptions, arguments: VerifyPlanArguments) -> int:
    """Show files, agents, calls and cost of a verification; spends nothing."""
    order, detach = arguments.order, arguments.detach
    require_sending(order, detach=detach)
    cap = parse_budget(order.budget_usd)

    async def work(muster: Muster) -> int:
        request = request_of(muster, order, muster.runs.options(dispatch=ordered_dispatch(order)), detach=detach)
        async with muster.verify.prepare(request.folder, request.selection, request.choice) as prepared:
            if prepared.is_empty:
                return tell_nothing(common, request.selection, prepared, allowed=order.allow_empty)
            found = muster.verify.plan(prepared.spec, request.options.dispatch)
            if request.detach:
                muster.verify.require_batches(prepared.spec, request.options.dispatch)
            data = verify_plan_view(found, prepared, cap)
            answer(common, data, lambda console: _tell(console, found, prepared, cap))
            return 0

    return with_muster(common, work, allow_unpriced=arguments.allow_unpriced, keyless=True)


def _tell(console: "Console", found: VerifyPlan, prepared: Prepared, cap: int | None) -> None:
    console.print(clean(f"{extent(found, prepared)}, agents from {prepared.agents_file}"), soft_wrap=True)
    console.print(plan_table(found, console.width))
    for line in _notes(found, cap):
        console.print(clean(line), soft_wrap=True)


def plan_table(found: VerifyPlan, width: int) -> "Table":
    """Draw who would be asked; what there is no room for is left out, but never names and the most it can cost."""
    parts, total = found.parts, found.all
    loads = [*((part.load, not part.verifier.command) for part in parts), (total, True)]
    usd = usd_of([load for load, _ in loads])
    columns = [
        Column("wave", [*(str(part.verifier.wave) for part in parts), ""]),
        Column("agent", [*(part.verifier.name for part in parts), "together"], right=False, folds=True, least=WIDE),
        Column("asks", [*(_whom(part) for part in parts), ""], right=False, folds=True, least=NARROW),
        Column("files", [f"{number:,}" for number in (*(part.files for part in parts), found.files)]),
        Column("calls", [f"{load.calls:,}" for load, _ in loads]),
        Column("calls\nat most", [f"{load.most_calls:,}" for load, _ in loads]),
        Column("tokens", [f"{load.tokens:,}" if paid else "" for load, paid in loads]),
        Column("about,\nat least", [usd(load.least) if paid else "" for load, paid in loads]),
        Column("at most", [most_words(load, usd) if paid else "" for load, paid in loads]),
    ]
    table = fitted(columns, MIN_MISSED, width)
    for row in table.rows[-2:-1]:
        row.end_section = True  # the sum stands below a line
    return table


_WAYS = {Mode.BATCH: " in batches", Mode.FLEX: " in the tier flex"}


def _whom(part: PlannedAgent) -> str:
    one = part.verifier
    if one.command:
        return clean(shlex.join(one.command))
    return clean(one.model) + _WAYS.get(part.mode or Mode.LIVE, "")


def _notes(found: VerifyPlan, cap: int | None) -> list[str]:
    lines = [*(f"left out: {one}" for one in some_left_out(found.left_out)), *redactions(found)]
    if any(not part.verifier.command for part in found.parts):
        lines.append("the maximum includes one repair of each call, which are rare; later waves may not begin")
    return [*lines, *bound_words(found.all, cap)]
