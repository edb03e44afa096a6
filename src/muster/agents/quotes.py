"""What members of batches can cost."""

from collections.abc import Callable, Sequence

from muster.agents.tally import ceiling_of
from muster.domain.agent import Quote
from muster.domain.batch import Tariff
from muster.domain.call import Request
from muster.domain.errors import BadConfiguration, did_you_mean
from muster.domain.money import NOTHING
from muster.domain.script import BYTES_PER_TOKEN

PRICE = "batch_price = { input = 0.50, output = 2.50 }"


def quoter(
    name: str, tariff: Tariff, *, unpriced_ok: bool, near: Sequence[str] = ()
) -> Callable[[Request, int], Quote]:
    """Give the function that bounds what a member costs: every byte a token at the dearest rate, max_tokens written."""

    def quote(request: Request, size: int) -> Quote:
        if tariff.batch is None and not unpriced_ok:
            raise _no_price(name, tariff, near)
        ceiling = ceiling_of(request, size)
        most = tariff.batch.most(ceiling.input, ceiling.output) if tariff.batch else NOTHING
        return Quote(most=most, tokens=size // BYTES_PER_TOKEN + ceiling.output)

    return quote


def _no_price(name: str, tariff: Tariff, near: Sequence[str]) -> BadConfiguration:
    known = "" if tariff.live is None else " (one for live calls is)"
    return BadConfiguration(
        f"no batch price is known for {name}{known}, so the cost of a batch cannot be bounded",
        suggestions=(
            *did_you_mean(near),
            f"give it one in muster.toml: {PRICE} (dollars for a million tokens)",
            "or ask it live, without a batch",
            "or spend without counting: --allow-unpriced",
        ),
    )
