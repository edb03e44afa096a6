"""`muster plan`: what a suite run would do and cost; spends nothing and stores nothing."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner
from muster.cli.run_options import Chosen, chosen
from muster.cli.sending import Sending, sent
from muster.cli.speech import answer

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster
    from muster.app.loads import Load
    from muster.app.suite_office import Survey


def register(app: Group) -> None:
    """Add the command."""
    command(app, "plan")(plan)


@sent
@chosen
def plan(
    manner: Manner,
    chosen: Chosen,
    sending: Sending,
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="Say whether it would be enough.")] = None,
    allow_unpriced: Annotated[
        bool, Option("--allow-unpriced", help="Count models whose price is not known as free.")
    ] = False,
) -> None:
    """Say how many calls a run would make, of how many tokens, and what that could cost."""

    async def work(muster: "Muster") -> "Survey":
        from muster.app.suite_office import Quoting, survey
        from muster.cli.run_order import Source, wanted_spec

        spec = await wanted_spec(muster, chosen, Source())
        return survey(muster, spec, sending.dispatch, Quoting.ALL)

    found = with_muster(manner, work, allow_unpriced=allow_unpriced, keyless=True)
    cap = parse_cap(budget)
    answer(manner, _data(found, cap), lambda console: _tell(console, found, cap))


def parse_cap(budget: str | None) -> int | None:
    """Read a budget in microdollars."""
    from muster.settings import parse_budget

    return parse_budget(budget)


def load_json(load: "Load") -> dict[str, Any]:
    """Give calls that would be made as JSON."""
    from muster.domain.money import to_usd

    return {
        "calls": load.calls,
        "tokens": load.tokens,
        "least_usd": to_usd(load.least),
        "most_usd": to_usd(load.most),
    }


def _data(found: "Survey", cap: int | None) -> dict[str, Any]:
    from muster.domain.money import to_usd

    return {
        "suites": found.suites,
        "cases": found.cases,
        "skipped": found.skipped,
        "agents": {agent: load_json(load) for agent, load in found.agents.items()},
        "judge": load_json(found.judge),
        "commands": found.commands,
        "may_call_tools": found.may_call_tools,
        "total": load_json(found.all),
        "budget_usd": None if cap is None else to_usd(cap),
        "fits": None if cap is None else found.all.most <= cap,
    }


def _tell(console: "Console", found: "Survey", cap: int | None) -> None:
    from rich.table import Table

    from muster.domain.money import show_usd

    table = Table("who", box=None, pad_edge=False, header_style="bold")
    for title in ("calls", "tokens at most", "about, at least", "at most"):
        table.add_column(title, justify="right")
    rows = [*found.agents.items(), *([("judge", found.judge)] if found.judge.calls else []), ("together", found.all)]
    for who, load in rows:
        table.add_row(who, f"{load.calls:,}", f"{load.tokens:,}", show_usd(load.least), show_usd(load.most))
    cases = "1 case" if found.cases == 1 else f"{found.cases:,} cases"
    console.print(f"{cases}, {found.skipped:,} of them skipped" if found.skipped else cases)
    console.print(table)
    for line in _notes(found, cap):
        console.print(line, soft_wrap=True)


def _notes(found: "Survey", cap: int | None) -> list[str]:
    lines = []
    if found.commands:
        lines.append(f"{found.commands:,} commands of process evaluators are run on this machine")
    if found.judge.calls:
        lines.append("the most counts one repair for each verdict, which judges seldom need")
    if found.may_call_tools:
        lines.append("cases with tools may make more calls than are counted here: one for each round of tool calls")
    return [*lines, *([] if cap is None else [budget_words(cap, found.all.most)])]


def budget_words(cap: int, most: int) -> str:
    """Say whether a budget would be enough."""
    from muster.domain.money import show_usd

    enough = "is enough for" if most <= cap else "may stop this run before its end, but will not be exceeded:"
    return f"a budget of {show_usd(cap)} {enough} {show_usd(most)} at most"
