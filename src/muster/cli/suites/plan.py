"""`muster plan`: what a suite run would do and cost; spends nothing and stores nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from muster.app import Muster
from muster.app.base.costs import ATTEMPTS, Load
from muster.app.suites.exact import ExactCount
from muster.app.suites.plan import SuitePlan
from muster.app.suites.values import MAX_TOOL_TURNS
from muster.app.views.plans import plan_view
from muster.cli.options import require_dispatch
from muster.cli.session import with_muster
from muster.cli.suites.options import PlanArguments
from muster.cli.suites.order import tell_warnings
from muster.cli.terminal.output import CommonOptions, answer, fail, note
from muster.cli.terminal.table import Column, filled, fitting
from muster.domain.errors import BadArgument
from muster.domain.money import show_usd, usd_format
from muster.domain.run_order import dispatch_of
from muster.settings import parse_budget
from muster.text.words import count

if TYPE_CHECKING:
    from rich.console import Console

PROGRESS_EVERY = 40  # requests
ExactCounts = Mapping[str, ExactCount]


def plan(common: CommonOptions, arguments: PlanArguments) -> int:
    """Show how many calls and tokens a run would need, and what it could cost."""
    order = arguments.order
    require_dispatch(order, detach=arguments.detach)

    def tell_progress(made: int) -> None:
        if made % PROGRESS_EVERY == 0:
            note(common, f"{made:,} requests counted")

    async def work(muster: Muster) -> tuple[SuitePlan, ExactCounts | None]:
        spec = await muster.suites.spec(order)
        found = muster.suites.plan(spec, dispatch_of(order))
        tell_warnings(found, spec)
        if not arguments.exact:
            return found, None
        return found, await muster.suites.exact(spec, most=arguments.exact_requests, on_count=tell_progress)

    # A run that comes as a file is imported before it is looked at.
    imports = any(Path(one).is_file() for one in order.references)
    # Prices are known without a key; only who counts wants one.
    found, exact = with_muster(
        common, work, allow_unpriced=arguments.allow_unpriced, keyless=not arguments.exact, create=imports
    )
    cap = parse_budget(order.budget_usd)
    data = plan_view(found, cap, exact)
    if found.damaged and common.json:
        return fail(common, _not_valid(found), data)
    answer(common, data, lambda console: _tell(console, found, cap, exact))
    return fail(common, _not_valid(found)) if found.damaged else 0


def _not_valid(found: SuitePlan) -> BadArgument:
    told = f"{found.damaged:,} of {count(found.cases, 'case')} would end as error: not valid, and not asked"
    return BadArgument(told, suggestions=("muster validate PATH",))


def _tell(console: "Console", found: SuitePlan, cap: int | None, exact: ExactCounts | None) -> None:
    rows = [*found.agents.items(), *([("judge", found.judge)] if found.judge.calls else []), ("together", found.all)]
    loads = [load for _, load in rows]
    usd = usd_of(loads)
    columns = [
        Column("who", [who for who, _ in rows], right=False, folds=True),
        Column("calls", [f"{load.calls:,}" for load in loads]),
        Column("calls at most", [f"{load.most_calls:,}" for load in loads]),
        Column("tokens at most", [f"{load.tokens:,}" for load in loads]),
        Column("about, at least", [usd(load.least) for load in loads]),
        Column("at most", [most_words(load, usd) for load in loads]),
    ]
    shown = fitting(columns, ("tokens at most", "calls at most", "about, at least"), console.width, 2)
    table = filled(Table(box=None, pad_edge=False, header_style="bold"), shown)
    cases = "1 case" if found.cases == 1 else f"{found.cases:,} cases"
    console.print(f"{cases}, {found.skipped:,} of them skipped" if found.skipped else cases)
    console.print(table)
    for line in [*_exact_lines(exact or {}), *_notes(found, cap)]:
        console.print(line, soft_wrap=True)


def _exact_lines(exact: ExactCounts) -> Iterator[str]:
    """Yield what the providers counted of each agent, and what they did not."""
    for agent, found in exact.items():
        if found.counted:
            cost = "no known price" if found.cost is None else show_usd(found.cost)
            yield (
                f"{agent}: {count(found.counted, 'first request')} with {found.tokens:,} input tokens ({cost}), "
                f"counted by the provider with {count(found.requests, 'free request')}"
            )
        if found.uncounted:
            yield f"{agent}: {count(found.uncounted, 'first request')} not counted, only estimated: {found.why}"
    if exact:
        yield "later turns and judges depend on the answers; they are estimated, and the maximum does not change"


def _notes(found: SuitePlan, cap: int | None) -> list[str]:
    lines = []
    if found.commands:
        lines.append(f"{found.commands:,} commands of process evaluators are run on this machine")
    if found.judge.calls:
        lines.append("the maximum includes one repair of each verdict, which judges seldom need")
    if found.may_call_tools:
        lines.append(f"the maximum includes {MAX_TOOL_TURNS} rounds of tool calls in each turn of a case with tools")
    return [*lines, *bound_words(found.all, cap)]


def usd_of(loads: Sequence[Load]) -> Callable[[int], str]:
    """Return what writes the amounts of some loads with one number of places."""
    return usd_format(*(amount for load in loads for amount in (load.least, 0 if load.unbounded else load.most)))


def most_words(load: Load, usd: Callable[[int], str] = show_usd) -> str:
    """Write the most that calls can cost."""
    return "no maximum" if load.unbounded else usd(load.most)


def bound_words(load: Load, cap: int | None) -> list[str]:
    """Return what the most is made of, whether there is one, and whether a budget would be enough."""
    if load.unbounded:
        agents = ", ".join(load.unbounded)
        lines = [f"no maximum exists for {agents}: declare budget_usd or a price in muster.toml"]
    elif load.most:
        lines = [f"the maximum includes every attempt that can cost money: up to {ATTEMPTS} when answers are lost"]
    else:
        lines = []
    if load.live is not None and not load.unbounded:
        lines.append(f"live, in the standard tier, the maximum would be {show_usd(load.live)}")
    if cap is None:
        return lines
    if load.unbounded:
        return [*lines, f"a budget of {show_usd(cap)} may be exceeded by what these agents report"]
    enough = "is enough for" if load.most <= cap else "may stop this run early, and is never exceeded; the run can cost"
    usd = usd_format(cap, load.most)
    return [*lines, f"a budget of {usd(cap)} {enough} {usd(load.most)} at most"]
