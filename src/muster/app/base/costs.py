"""Calls to agents that have not been made: what they would cost at least and at most."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from muster.agents.prices import price_of
from muster.app.agent_kinds.directory import AgentDirectory
from muster.domain.agent import Quote
from muster.domain.call import Request
from muster.domain.dispatch import Dispatch, Fallback, Mode
from muster.domain.price import Price
from muster.domain.script import BYTES_PER_TOKEN
from muster.engine.calls.retry import RetryPolicy

LISTED = ("anthropic", "openai")  # providers that a rehearsal server plays
MIN_ANSWER_TOKENS = 1  # tokens of an answer, for the least that something can cost
ATTEMPTS = RetryPolicy().attempts  # of a live call whose outcome stays unknown
DEAREST = 2  # how many times the plain price of input the dearest is, by which calls are reserved: that of a cache


def listed_price(model: str, tier: str = "default") -> Price | None:
    """Return what a model costs now in a tier, by the tables of the provider that has it; None when no provider has."""
    now = datetime.now(UTC)
    return next((price for one in LISTED if (price := price_of(one, model, now, tier=tier)) is not None), None)


class Quoting(StrEnum):
    """How closely a survey asks what things cost."""

    NONE = "none"  # nobody will be asked
    FIRST = "first"  # one request of each agent: whether there is a key and a price
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls to one agent, and what they can cost in microdollars."""

    calls: int = 0  # when no tool is called and no answer must be repaired
    most_calls: int = 0
    tokens: int = 0  # the most that limits of tokens per minute would count
    least: int = 0  # about: short answers, and four bytes to a token
    most: int = 0  # what would be reserved, with every attempt that can be paid
    live: int | None = None  # the same if all were asked live in the standard tier; None: they are
    unbounded: tuple[str, ...] = ()  # agents whose calls have no maximum: what they report is booked

    def plus(self, other: "Load") -> "Load":
        """Add two loads."""
        return Load(
            calls=self.calls + other.calls,
            most_calls=self.most_calls + other.most_calls,
            tokens=self.tokens + other.tokens,
            least=self.least + other.least,
            most=self.most + other.most,
            live=None if self.live is None and other.live is None else self.live_most + other.live_most,
            unbounded=tuple(dict.fromkeys((*self.unbounded, *other.unbounded))),
        )

    @property
    def live_most(self) -> int:
        """Return what would be reserved if all were asked live in the standard tier."""
        return self.most if self.live is None else self.live

    def fits(self, cap: int) -> bool:
        """Return whether a budget is enough for the most that the calls can cost."""
        return not self.unbounded and self.most <= cap


NOTHING = Load()


class Quoter:
    """Asks agents what requests would cost."""

    def __init__(self, directory: AgentDirectory, dispatch: Dispatch, quoting: Quoting) -> None:
        self._directory, self._dispatch, self._quoting = directory, dispatch, quoting
        self._quoted: set[str] = set()

    def wants(self, agent: str) -> bool:
        """Return whether an agent is to be asked what it costs; raises when there is no such agent."""
        self._directory.find(agent)  # its defaults are part of what is replayed too
        if self._quoting is Quoting.NONE or (self._quoting is Quoting.FIRST and agent in self._quoted):
            return False
        self._quoted.add(agent)
        return True

    def load(self, agent: str, least: Sequence[Request], most: Sequence[Request], calls: int, mode: Mode) -> Load:
        """Add up requests: with short answers the least that they cost, with long ones the most."""
        low = [self._quote(agent, replace(asked, max_tokens=MIN_ANSWER_TOKENS), mode) for asked in least]
        high = [self._quote(agent, asked, mode) for asked in most]
        return Load(
            calls=calls,
            most_calls=len(most),
            tokens=sum(quote.tokens for quote in high),
            least=sum(quote.most for quote in low) // (BYTES_PER_TOKEN * DEAREST),
            most=sum(self._paid(agent, asked, quote, mode) for asked, quote in zip(most, high, strict=True)),
            live=self._live(agent, most, mode),
            unbounded=() if self._directory.has_maximum(agent) else (agent,),
        )

    def _paid(self, agent: str, request: Request, quote: Quote, mode: Mode) -> int:
        """Return the most that all attempts of one call can cost: those whose answers are lost are paid too."""
        live = ATTEMPTS if self._directory.is_retried(agent) else 1
        sent = self._directory.mode_of(agent, mode)
        if sent is Mode.LIVE:
            return live * quote.most
        most = (self._dispatch.batches if sent is Mode.BATCH else live) * quote.most
        if self._dispatch.fallback is Fallback.LIVE:
            most += live * self._quote(agent, request, Mode.LIVE).most
        return most

    def _live(self, agent: str, requests: Sequence[Request], mode: Mode) -> int | None:
        """Return the most that calls would cost live, in the standard tier; None where that is how they are asked."""
        if self._directory.mode_of(agent, mode) is Mode.LIVE:
            return None
        return sum(self._paid(agent, asked, self._quote(agent, asked, Mode.LIVE), Mode.LIVE) for asked in requests)

    def _quote(self, agent: str, request: Request, mode: Mode) -> Quote:
        found = self._directory.find(agent)
        batching = self._directory.batching(agent) if mode is Mode.BATCH else None
        flex = self._directory.flex(agent) if mode is Mode.FLEX else None
        whole = found.profile.complete(request)
        if batching is None:
            return (flex or found).quote(whole)
        batching = batching.of(whole)
        size = len(batching.encode(whole, self._dispatch.cache)) + found.profile.media_tokens(whole)
        return batching.quote(whole, size)
