"""The JSONPath library, in which the patterns of `match` and `search` are searched for within limits. Slow to load.

These patterns come from whoever wrote the path, or from the answer itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from iregexp_check import check
from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError
from jsonpath_rfc9535.function_extensions import Match, Search
from jsonpath_rfc9535.function_extensions._pattern import map_re

from muster.domain.errors import BadArgument
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.patterns import SECONDS, found_in
from muster.text.limited.process import TooSlow

__all__ = ["ENVIRONMENT", "JSONPathError", "shared_allowance"]

_allowance: ContextVar[CpuAllowance | None] = ContextVar("_allowance", default=None)


@contextmanager
def shared_allowance() -> Iterator[None]:
    """Let all searches in the block share what CPU one may use: a path may search in every part of an answer."""
    before = _allowance.set(CpuAllowance(SECONDS))
    try:
        yield
    finally:
        _allowance.reset(before)


class LimitedMatch(Match):
    """Whether a text is matched as a whole."""

    def __call__(self, string: object, pattern: object) -> bool:
        """Return it; raises TooSlow."""
        return _found(string, pattern, r"\A(?:%s)\Z")


class LimitedSearch(Search):
    """Whether a pattern is found in a text."""

    def __call__(self, string: object, pattern: object) -> bool:
        """Return it; raises TooSlow."""
        return _found(string, pattern, "%s")


def _found(text: object, pattern: object, form: str) -> bool:
    """Return whether a text has an I-Regexp (RFC 9485); what is not one is found nowhere."""
    if not (isinstance(text, str) and isinstance(pattern, str) and check(pattern)):
        return False
    try:
        return found_in(form % map_re(pattern), [text], _allowance.get())
    except TooSlow:
        raise
    except BadArgument:
        return False


ENVIRONMENT = JSONPathEnvironment()
ENVIRONMENT.function_extensions |= {"match": LimitedMatch(), "search": LimitedSearch()}
