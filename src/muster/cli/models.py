"""`muster agents models`: what a provider offers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.views.project import OfferedModelView, offered_model_view
from muster.cli.line import Argument
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean
from muster.cli.terminal.table import Column, fitted

if TYPE_CHECKING:
    from rich.console import Console

MIN_MISSED = ("context", "at most", "since", "in", "out")


def list_models(
    common: CommonOptions,
    provider: Annotated[
        str,
        Argument(
            metavar="PROVIDER",
            complete="agent_names",
            help="A provider such as anthropic or openai, or a model of muster.toml whose server is asked.",
        ),
    ],
) -> None:
    """List the models that a provider offers, with their prices.

    Prices are dollars for a million tokens in and out, as far as the price list knows them.
    """

    async def work(muster: Muster) -> list[OfferedModelView]:
        return [offered_model_view(model) for model in await muster.agents.models(provider)]

    found = sorted(with_muster(common, work), key=lambda model: model.created, reverse=True)
    answer(common, found, lambda console: _print(console, found))


def _print(console: "Console", found: Sequence[OfferedModelView]) -> None:
    if not found:
        console.print("The provider lists no models.")
        return
    columns = [
        Column("model", [clean(one.id) for one in found], right=False, folds=True),
        Column("since", [one.created for one in found], right=False),
        Column("context", [_tokens(one.context_tokens) for one in found]),
        Column("at most", [_tokens(one.max_output_tokens) for one in found]),
        Column("in", [_dollars(one.input_usd) for one in found]),
        Column("out", [_dollars(one.output_usd) for one in found]),
    ]
    console.print(fitted(columns, MIN_MISSED, console.width))


def _tokens(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _dollars(amount: float | None) -> str:
    return "–" if amount is None else f"${amount:g}"
