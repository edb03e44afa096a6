"""Models behind chat completions, asked live: OpenAI and every compatible server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.agents.account import Account
from muster.agents.address import join
from muster.agents.http import Http
from muster.agents.model import ModelAgent
from muster.agents.openai import answer, wire
from muster.agents.openai.stream import Fold
from muster.agents.openai.wire import MaxTokens
from muster.agents.tally import Ceiling
from muster.domain.agent import Profile
from muster.domain.call import Reply, Request, Timings
from muster.domain.errors import WireError
from muster.domain.price import Price

BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIWire:
    """Chat completions, for one model."""

    model: str
    price: Price | None
    account: Account
    max_tokens: MaxTokens

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""
        return wire.encode(request, self.model, stream=stream, max_tokens=self.max_tokens)

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""
        return answer.decode(body, self.price, ceiling, self.account, timings)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes) -> WireError:
        """Read a failure."""
        return answer.fault(status, headers, body, self.account)

    def fold(self, ceiling: Ceiling) -> Fold:
        """Begin to read a stream."""
        return Fold(self.price, ceiling, self.account)


class OpenAIAgent(ModelAgent):
    """A model behind an API of chat completions; without a key when the server wants none."""

    def __init__(
        self,
        *,
        profile: Profile,
        model: str,
        price: Price | None,
        http: Http,
        key: str = "",
        key_variable: str = KEY_VARIABLE,
        base_url: str = BASE_URL,
        max_tokens: MaxTokens = MaxTokens.NEW,
        headers: Mapping[str, str] | None = None,
        unpriced_ok: bool = False,
        near: Sequence[str] = (),
    ) -> None:
        account = Account(place=profile.name, variable=key_variable, key=key)
        authorization = {"authorization": f"Bearer {key}"} if key else {}
        super().__init__(
            profile=profile,
            wire=OpenAIWire(model=model, price=price, account=account, max_tokens=max_tokens),
            url=join(base_url, "/chat/completions"),
            headers={**authorization, **(headers or {})},
            account=account,
            price=price,
            http=http,
            unpriced_ok=unpriced_ok,
            near=near,
        )
