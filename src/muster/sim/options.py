"""How a rehearsal server is set up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.price import Price
from muster.domain.script import Script
from muster.sim.faults import Faults
from muster.sim.protocols.ask import DEFAULT_TIER, GLOBAL

PriceList = Callable[[str, str], Price | None]  # of a model in a tier of service


def no_price(model: str, tier: str) -> Price | None:
    """Return no price: everything costs play money."""
    return None


ECHO_SCRIPT = Script()
NO_FAULTS = Faults()
ANY_MODEL = ("*",)
THINKS = False  # whether a server thinks when neither its options nor its script say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything a rehearsal server can be told; the defaults echo at once and never fail."""

    port: int = 0  # 0: a free one
    latency_ms: float = 0.0  # until the answer, or the first event of a stream
    script: Script = ECHO_SCRIPT
    faults: Faults = NO_FAULTS
    capacity: int | None = None  # requests at a time, unless the faults say another number
    key: str | None = None  # None: any key will do, but there must be one
    models: tuple[str, ...] = ANY_MODEL  # globs
    context_tokens: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)  # by glob; before the list
    price_of: PriceList = no_price  # what a model costs; those that it does not know cost play money
    max_body_bytes: int = 64 * 1024 * 1024
    batch_ms: float = 0.0  # from the creation of a batch to its end
    batch_requests: int | None = None  # at most in one batch; None: as many as the provider takes
    batch_bytes: int | None = None  # at most in one batch; None: as large as the provider takes it
    state: Path | None = None  # read at the start, written at the end
    live_counts: bool | None = None  # whether a batch tells how far it has got; None: as the provider does
    thinking: bool | None = None  # whether models think, and refuse what they do not take; None: as the script says
    tier: str = DEFAULT_TIER  # of requests that name none
    geo: str = GLOBAL  # where inference takes place of requests that do not say it

    @property
    def thinks(self) -> bool:
        """Return whether the models of this server think."""
        said = self.script.thinking if self.thinking is None else self.thinking
        return THINKS if said is None else said
