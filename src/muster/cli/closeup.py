"""One run drawn for a person, with as much of its calls and events as was asked for."""

from typing import TYPE_CHECKING

from muster.cli.clean import clean
from muster.cli.portrait import event_line
from muster.cli.run_panel import run_panel
from muster.cli.tables import attempts_table, calls_table

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app.run_details import RunDetails


def print_details(console: "Console", details: "RunDetails") -> None:
    """Write it for a person."""
    run = details.run
    console.print(run_panel(run, details.batches))
    if details.calls is not None:
        console.print(calls_table(details.calls, console.width))
        if details.calls_left_out:
            console.print(f"… and {details.calls_left_out} more calls; all of them are in: muster runs export {run.id}")
    if details.uncertain:
        console.print(attempts_table(details.uncertain))
    for event in details.events or ():
        console.print(clean(event_line(event)), soft_wrap=True)
