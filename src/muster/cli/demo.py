"""`muster demo`: a real piece of work without a key, killed in the middle, resumed, and proved not to be paid twice."""

from typing import TYPE_CHECKING

import typer

from muster.cli.frame import command
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with

if TYPE_CHECKING:
    from rich.console import Console

    from muster.cli.demo_play import Outcome


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "demo")(demo)


def demo(manner: Manner) -> int:
    """Show a real piece of work that needs no key."""
    import asyncio

    from muster.cli.demo_play import play
    from muster.cli.progress import Hush, display

    outcome = asyncio.run(play(Hush() if manner.quiet or manner.json else display(manner)))
    if not outcome.holds:
        told = {"code": "demo", "message": "the proof does not hold: something was paid twice", "suggestions": []}
        return fail_with(manner, told, 1, outcome.json())
    answer(manner, outcome.json(), lambda console: _tell(console, outcome))
    return 0


def _tell(console: "Console", outcome: "Outcome") -> None:
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
    console.print("next: muster ask sim/echo hello   ·   muster runs list   ·   muster doctor")
