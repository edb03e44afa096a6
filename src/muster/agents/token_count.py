"""How many tokens go in with a request, as its provider counts them; asking costs nothing."""

from collections.abc import Callable, Mapping
from typing import Annotated

from muster.agents.faults import Account, unpaid, unreadable
from muster.agents.http.client import Http
from muster.domain.agent import Timeouts
from muster.domain.errors import OutcomeUnknown, WireError
from muster.text import typed

TIMEOUTS = Timeouts(call=60.0)

Fault = Callable[[int, Mapping[str, str], bytes, Account], WireError]


class _Count(typed.Struct, gc=False):
    input_tokens: Annotated[int, typed.Meta(ge=0)]


_count = typed.Decoder(_Count).decode


async def counted_tokens(
    http: Http, url: str, headers: Mapping[str, str], body: bytes, account: Account, fault: Fault
) -> int:
    """Return how many tokens a provider counts; raises what it answers instead, which never costs anything."""
    try:
        answer = await http.post(url, {"content-type": "application/json", **headers}, body, TIMEOUTS)
        if not 200 <= answer.status < 300:
            raise fault(answer.status, answer.headers, answer.body, account)
        return _count(answer.body).input_tokens
    except (typed.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is not a count of tokens", account, answer.body)) from None
    except OutcomeUnknown as error:
        raise unpaid(error) from error
