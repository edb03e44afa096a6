"""Failures as providers report them, and the account they concern: a status and a message become one error. Pure."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite

from muster.agents.http.request import split_url
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    ProviderFault,
    RateLimited,
    TierFull,
    TryLater,
    Undecodable,
    UnknownModel,
    WireError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One agent at one address, for messages: where it happened and which variable holds its key."""

    place: str  # "anthropic/claude-haiku-5-5"
    variable: str = ""  # "ANTHROPIC_API_KEY"; empty when no key is needed
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not (self.key.isascii() and self.key.isprintable()):
            raise BadConfiguration(
                f"the key for {self.place} contains characters that are not allowed in a header",
                suggestions=(f"check {self.variable} for line breaks and quotation marks",) if self.variable else (),
            )

    def scrub(self, text: str) -> str:
        """Return a foreign text without the key."""
        return text.replace(self.key, "[key]") if self.key else text


def fingerprint(base_url: str, key: str) -> str:
    """Name an account so that it is known again, and the key cannot be found from the name."""
    origin, _ = split_url(base_url)
    return hashlib.sha256(f"muster account\n{origin.place}\n{key}".encode()).hexdigest()[:16]


MAX_MESSAGE = 2000
_MAX_READ = 65_536

_KINDS: dict[int, type[WireError]] = {
    401: AuthRefused,
    402: AuthRefused,  # no credit is left: waiting does not help, and every other call would meet the same
    403: AuthRefused,
    404: UnknownModel,
    408: OutcomeUnknown,  # their side gave up waiting; for what, it does not say
    409: TryLater,
    425: TryLater,
    429: RateLimited,
    503: Overloaded,
    529: Overloaded,
    # A gateway gave up; the model behind it may have answered all the same.
    **dict.fromkeys((502, 504, 520, 521, 522, 523, 524), OutcomeUnknown),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """What a provider says went wrong, in its own words."""

    status: int
    text: str
    retry_after: float | None = None
    request_id: str | None = None
    kind: type[WireError] | None = None  # when the words say more than the status


def error_of(answer: ErrorAnswer, account: Account) -> WireError:
    """Return the error of the tree for an answer that reports one, without the key."""
    kind = answer.kind or kind_of(answer.status)
    text = account.scrub(answer.text.strip())[:MAX_MESSAGE] or "no reason given"
    return kind(
        f"{account.place} answered {answer.status}: {text}",
        status=answer.status,
        retry_after=answer.retry_after,
        request_id=answer.request_id,
        suggestions=_suggestions(kind, answer.status, account),
    )


def kind_of(status: int) -> type[WireError]:
    """Return the error class for a status that is not a success."""
    return _KINDS.get(status) or (ProviderFault if status >= 500 else InvalidRequest)


def unpaid(error: WireError) -> WireError:
    """Return the same error for an exchange that cannot have cost anything, however it ended."""
    if not isinstance(error, OutcomeUnknown):
        return error
    return TryLater(error.message, status=error.status, retry_after=error.retry_after, request_id=error.request_id)


def unreadable(what: str, account: Account, body: bytes) -> OutcomeUnknown:
    """Return the error of a success that cannot be read; bytes that are not text, such as gzip, are not asked again."""
    message = f"{account.place} {what}: {account.scrub(plain(body))[:200]!r}"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return Undecodable(f"{message}, which is not UTF-8")
    return OutcomeUnknown(message)


def plain(body: bytes) -> str:
    """Read a body that is not what it should be; long enough that the key is taken out before the text is cut."""
    return body[:_MAX_READ].decode("utf-8", "replace")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long the provider asks us to wait, in seconds; no cap here, its users cap it."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    return _until(value, headers.get("date")) if seconds is None and value else seconds


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if isfinite(number) else None


def _until(when: str, now: str | None) -> float | None:
    try:
        # Measured on the provider's own clock: ours may be wrong. Without one the engine's backoff decides.
        return max(0.0, (parsedate_to_datetime(when) - parsedate_to_datetime(now or "")).total_seconds())
    except (ValueError, TypeError):
        return None


def _suggestions(kind: type[WireError], status: int, account: Account) -> tuple[str, ...]:
    if 300 <= status < 400:
        return ("redirects are not followed, because the key would be sent along; set the base address to the new one",)
    if kind is TierFull:
        return ("let the standard tier answer what this one refuses: --fallback live",)
    if kind is UnknownModel:
        return ("check the name of the model and the base address",)
    if kind is not AuthRefused:
        return ()
    if status in (402, 429):
        return ("add credit to the account, or raise its limit",)
    if not account.variable:
        return ('name the variable that holds the key in muster.toml: key_env = "MY_KEY", or a key_command',)
    return (f"set {account.variable} to a key that is valid here",)
