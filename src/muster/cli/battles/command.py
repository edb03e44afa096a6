"""What is known of battles and scale tests while they are played; their starts are made (`cli/work`)."""

from typing import TYPE_CHECKING, Annotated

from muster.app.views.battles import (
    battle_status_view,
    decisions_view,
    messages_view,
    scale_status_view,
)
from muster.cli.battles.table import decision_line, message_line
from muster.cli.line import Argument, Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean

if TYPE_CHECKING:
    from rich.console import Console

BattleArgument = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last battle.",
    ),
]
ScaleArgument = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last scale test.",
    ),
]


def battle_status(common: CommonOptions, run: BattleArgument) -> None:
    """Show the state of a battle."""
    found = with_muster(common, lambda muster: muster.battles.status(run))
    answer(common, battle_status_view(found), lambda console: _say(console, f"{found.run.id}: {found.verdict}"))


def battle_messages(
    common: CommonOptions,
    run: BattleArgument,
    since_seq: Annotated[int, Option("--since-seq", metavar="N", min=0, help="Only messages after this number.")] = 0,
    limit: Annotated[int, Option("--limit", metavar="N", min=1, max=500, help="How many messages.")] = 50,
) -> None:
    """Print the messages of a battle, finished or in progress."""
    page = with_muster(common, lambda muster: muster.battles.messages(run, since_seq, limit))

    def tell(console: "Console") -> None:
        for message in page.messages:
            _say(console, message_line(message, None))

    answer(common, messages_view(page), tell)


def battle_decisions(common: CommonOptions, run: BattleArgument) -> None:
    """Print what validators and judges decided after each reply."""
    found = with_muster(common, lambda muster: muster.battles.decisions(run))

    def tell(console: "Console") -> None:
        for decision in found:
            _say(console, decision_line(decision))

    answer(common, decisions_view(found), tell)


def scale_status(common: CommonOptions, run: ScaleArgument) -> None:
    """Show the state of a scale test."""
    found = with_muster(common, lambda muster: muster.battles.scales.status(run))
    answer(common, scale_status_view(found), lambda console: _say(console, f"{found.run.id}: {found.verdict}"))


def _say(console: "Console", text: str) -> None:
    console.print(clean(text), soft_wrap=True)
