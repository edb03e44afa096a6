"""`muster demo`: real work without a key: killed, resumed, not paid twice; then a suite, with failures to look at."""

from typing import TYPE_CHECKING

from muster.cli.frame import command
from muster.cli.line import Group
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with

if TYPE_CHECKING:
    from rich.console import Console

    from muster.cli.demo_examination import Examination
    from muster.cli.demo_play import Outcome
    from muster.cli.progress import Display


def register(app: Group) -> None:
    """Add the command."""
    command(app, "demo")(demo)


def demo(manner: Manner) -> int:
    """Show a real piece of work, and a suite, that need no key."""
    import asyncio

    outcome, found = asyncio.run(_perform(manner))
    data = outcome.json() | {"suite": found.json()}
    if not outcome.holds or not found.holds:
        flaw = "cases of the suite ended otherwise than they should" if outcome.holds else "something was paid twice"
        told = {"code": "demo", "message": f"the proof does not hold: {flaw}", "suggestions": []}
        return fail_with(manner, told, 1, data)
    answer(manner, data, lambda console: _tell(console, outcome, found))
    return 0


async def _perform(manner: Manner) -> "tuple[Outcome, Examination]":
    from muster.cli.demo_examination import examine
    from muster.cli.demo_play import play

    return await play(_screen(manner)), await examine(_screen(manner))


def _screen(manner: Manner) -> "Display":
    from muster.cli.progress import Hush, display

    return Hush() if manner.quiet or manner.json else display(manner)


def _tell(console: "Console", outcome: "Outcome", found: "Examination") -> None:
    from muster.cli.suite_table import tell_report

    _tell_proof(console, outcome)
    console.print()
    tell_report(console, found.table, found.reference)
    console.print()
    console.print("`hasty` fails on purpose. What it said, and why that is not good enough:", soft_wrap=True)
    console.print(f"report: {found.file}", soft_wrap=True)
    console.print(f"suite:  {found.folder / 'cases.yaml'}", soft_wrap=True)
    console.print("next:   muster init my-agent   ·   muster ask sim/echo hello   ·   muster doctor", soft_wrap=True)


def _tell_proof(console: "Console", outcome: "Outcome") -> None:
    from rich.panel import Panel
    from rich.table import Table

    from muster.domain.money import show_usd

    proof, spent = outcome.proof, outcome.run.spent
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_row(str(proof.calls), "calls, every one answered")
    table.add_row(str(outcome.kept), "replies reused after the kill")
    table.add_row(str(proof.uncertain), "calls were on the wire when the process died: they may be paid, so they count")
    table.add_row(str(proof.paid), f"paid, says the server's audit; {proof.calls} + {proof.uncertain} are allowed")
    table.add_row(show_usd(spent.billed), f"spent, {show_usd(spent.uncertain)} more at most is uncertain")
    table.add_row(str(outcome.replay_requests), "requests made by the replay, with the same result")
    table.add_row("✓", f"for each of {proof.digests} different requests: paid ≤ calls + uncertain")
    console.print(Panel(table, title="paid once", title_align="left", border_style="green", expand=False))
