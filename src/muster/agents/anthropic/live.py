"""Models of Anthropic, asked live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.agents.account import Account
from muster.agents.address import join
from muster.agents.anthropic import answer, wire
from muster.agents.anthropic.stream import Fold
from muster.agents.http import Http
from muster.agents.model import ModelAgent
from muster.agents.tally import Ceiling
from muster.domain.agent import Profile
from muster.domain.call import Reply, Request, Timings
from muster.domain.errors import WireError
from muster.domain.price import Price

BASE_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicWire:
    """The Messages API, for one model."""

    model: str
    price: Price | None
    account: Account

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""
        return wire.encode(request, self.model, stream=stream)

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""
        return answer.decode(body, self.price, ceiling, self.account, timings)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> WireError:
        """Read a failure."""
        return answer.fault(status, headers, body, self.account)

    def fold(self, ceiling: Ceiling) -> Fold:
        """Begin to read a stream."""
        return Fold(self.price, ceiling, self.account)


class AnthropicAgent(ModelAgent):
    """A model behind Anthropic's Messages API."""

    def __init__(
        self,
        *,
        profile: Profile,
        model: str,
        key: str,
        price: Price | None,
        http: Http,
        base_url: str = BASE_URL,
        unpriced_ok: bool = False,
        near: Sequence[str] = (),
    ) -> None:
        account = Account(place=profile.name, variable=KEY_VARIABLE, key=key)
        super().__init__(
            profile=profile,
            wire=AnthropicWire(model=model, price=price, account=account),
            url=join(base_url, "/v1/messages"),
            headers={"x-api-key": key, "anthropic-version": VERSION},
            account=account,
            price=price,
            http=http,
            unpriced_ok=unpriced_ok,
            near=near,
        )
