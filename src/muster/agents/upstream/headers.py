"""Which headers go on: all but keys, what belongs to one connection, and what only the client's library wants. Pure."""

from collections.abc import Iterable, Mapping

# Of one connection, or ours to say: the key is that of the upstream, and its body is decoded on the way.
_OURS = frozenset(
    (
        *("accept-encoding", "connection", "content-encoding", "content-length", "expect", "host", "keep-alive"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)
_KEYS = frozenset(("authorization", "x-api-key", "api-key", "cookie", "idempotency-key", "openai-organization"))
_OF_CLIENTS = ("x-stainless-", "x-muster-", "x-forwarded-", "forwarded", "x-request-id", "origin", "referer")
_NOT_BACK = frozenset(("set-cookie", "server", "date", "alt-svc", "strict-transport-security"))


def passed_on(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers of a client that go on to the upstream; of one that stands twice all values, in order."""
    found: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        if name in _OURS or name in _KEYS or name.startswith(_OF_CLIENTS):
            continue
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def passed_back(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer that go back to the client."""
    found = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in found.items() if name not in _OURS and name not in _NOT_BACK}
