"""`muster verify metrics`: figures over past verifications."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster
    from muster.app.verify_values import VerifyMetrics


def register(app: Group) -> None:
    """Add the command."""
    command(app, "metrics")(metrics)


def metrics(
    manner: Manner,
    window: Annotated[str, Option("--since", metavar="WHEN", help="So long ago (7d, 24h, 30m), or a date.")] = "7d",
) -> None:
    """Say how long verifications took, how they ended, what agents found, and what a cycle cost."""
    import time

    from muster.app.verify_values import metrics_json
    from muster.cli.spans import local, since

    begin = since(window, time.time())

    async def work(muster: "Muster") -> "VerifyMetrics":
        return await muster.verify.metrics(begin)

    found = with_muster(manner, work)

    def tell(console: "Console") -> None:
        from muster.cli.verify_figures import tell_metrics

        if found.cycles:
            tell_metrics(console, found)
        else:
            console.print(f"no verifications since {local(begin)}")

    answer(manner, metrics_json(found), tell)
