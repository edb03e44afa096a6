"""Failures of the user's own service, and the veil over what may be secret in its words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_plus, urlsplit

import msgspec

from muster.agents.account import Account
from muster.agents.faults import Complaint, error_of, plain, retry_after
from muster.agents.flow import Answer
from muster.agents.payload import to_json
from muster.domain.canonical import Json
from muster.domain.errors import AuthRefused, CallFailed, WireError

_SHOWN = 200
_SHORTEST_SECRET = 6  # what is shorter stands in many a word
_LONG_NAME = 16  # no part of a path that a person made up is so long

_NOT_THERE = (404, 405, 410)


@dataclass(frozen=True, slots=True)
class Veil:
    """Covers in texts of strangers whatever we send that may be secret: values of headers and parts of the address."""

    secrets: tuple[str, ...] = field(repr=False)

    def over(self, text: str) -> str:
        """Give a text without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        return text

    def beginning(self, body: bytes) -> str:
        """Give the first characters of a body, to be shown."""
        return self.over(plain(body))[:_SHOWN]


def veil_of(url: str, headers: Mapping[str, str]) -> Veil:
    """Collect what may be secret, the longest first, so that no rest of one is left."""
    parts = urlsplit(url)
    spelled = [field.rpartition("=")[2] for field in parts.query.split("&")]
    found = {url, *spelled, *(unquote_plus(value) for value in spelled)}
    found |= {part for part in parts.path.split("/") if len(part) >= _LONG_NAME}
    for value in headers.values():
        found |= {value, value.rpartition(" ")[2]}  # "Bearer …": without its scheme too
    return Veil(tuple(sorted((text for text in found if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)))


def fault_of(answer: Answer, account: Account, veil: Veil) -> WireError:
    """Give the error for an answer whose status is no success."""
    error = error_of(
        Complaint(
            status=answer.status,
            text=veil.over(_words(answer.body)),
            retry_after=retry_after(answer.headers),
            request_id=answer.headers.get("x-request-id"),
            kind=CallFailed if answer.status in _NOT_THERE else None,
        ),
        account,
    )
    error.suggestions = error.suggestions or _suggestions(error, account)
    return error


def _words(body: bytes) -> str:
    try:
        trouble: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return plain(body)
    for name in ("error", "detail", "message"):
        if isinstance(trouble, dict) and trouble.get(name):
            trouble = trouble[name]
    return trouble if isinstance(trouble, str) else to_json(trouble).decode()


def _suggestions(error: WireError, account: Account) -> tuple[str, ...]:
    if error.status in _NOT_THERE:
        return (f"check the url of {account.place} in muster.toml: it must take a POST",)
    if isinstance(error, AuthRefused):
        return ('name the variable that holds the key in muster.toml: key_env = "MY_KEY"',)
    return ()
