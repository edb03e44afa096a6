"""Thinking: how much a model thinks before it answers, in what words, and the seal that tells where it came from.

A seal names the model, what stood before the thinking, its text and the thinking before it. It can be checked without
remembering anything, so a server that was started anew knows the thinking of the one before.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import NamedTuple

from muster.sim.protocols.ask import ThinkingPlan, Thought

MIN_THINKING, MAX_THINKING = 300, 3_000  # tokens
# The part of that range in which an effort lies.
SHARES = {
    "minimal": (0.0, 0.05),
    "low": (0.0, 0.3),
    "medium": (0.1, 0.5),
    "high": (0.2, 0.8),
    "xhigh": (0.5, 0.9),
    "max": (0.7, 1.0),
}
SENTENCE = "I weigh what was asked against what I know. "
TOKENS_PER_SENTENCE = 100  # a summary is much shorter than what it sums up

_KEY = b"muster.sim"
_PREFIX, _SHORT = 16, 8  # bytes


class Seal(NamedTuple):
    """What a seal says."""

    model: bytes
    prefix: bytes
    text: bytes
    previous: bytes
    name: bytes  # of the seal itself


def think(plan: ThinkingPlan, model: str, digest: str, tokens: int | None, *, redacted: bool = False) -> Thought | None:
    """Return what a model thinks of a request: as much as it is told, else by the digest and the effort."""
    if plan.effort in (None, "none") or tokens == 0:
        return None
    low, high = SHARES[plan.effort or "high"]
    span = MAX_THINKING - MIN_THINKING
    chance = low + (high - low) * int(digest[:8], 16) / 0xFFFF_FFFF
    drawn = MIN_THINKING + round(span * chance) if tokens is None else tokens
    length = drawn if plan.most is None else min(drawn, plan.most)
    text = SENTENCE * max(1, length // TOKENS_PER_SENTENCE) if plan.shown and not redacted else ""
    return Thought(tokens=length, text=text, seal=seal(model, plan.prefix, text, plan.previous), redacted=redacted)


def seal(model: str, prefix: bytes, text: str, previous: bytes = b"") -> str:
    """Seal a thinking."""
    said = _short(model) + prefix[:_PREFIX].ljust(_PREFIX, b"\0") + _short(text) + previous.ljust(_SHORT, b"\0")
    return b64encode(said + _mac(said)).decode()


def open_seal(text: object) -> Seal | None:
    """Read a seal of this program; None for anything else."""
    try:
        data = b64decode(text, validate=True) if isinstance(text, str) else b""
    except (Error, ValueError):
        return None
    said, mac = data[:-_PREFIX], data[-_PREFIX:]
    if len(said) != _PREFIX + 3 * _SHORT or not hmac.compare_digest(mac, _mac(said)):
        return None
    rest = said[_SHORT:]
    return Seal(said[:_SHORT], rest[:_PREFIX], rest[_PREFIX : _PREFIX + _SHORT], rest[-_SHORT:], mac[:_SHORT])


def is_of(found: Seal, model: str) -> bool:
    """Return whether a model made the thinking."""
    return found.model == _short(model)


def is_whole(found: Seal, text: str) -> bool:
    """Return whether the text is the one that was sealed."""
    return found.text == _short(text)


def follows(found: Seal, prefix: bytes, previous: bytes) -> bool:
    """Return whether it stands where it was made; what stood before the first thinking that is left may be gone."""
    return found.prefix == prefix[:_PREFIX] and (not previous or found.previous == previous)


def _short(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_SHORT]


def _mac(said: bytes) -> bytes:
    return hmac.digest(_KEY, said, "sha256")[:_PREFIX]
