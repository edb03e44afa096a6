"""How many tokens a model writes at most where a request names no limit, and how many it can read. Pure.

What neither this table nor the settings know is bounded by the context window; without that the request is refused.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from muster.agents.prices import context_window

# The first pattern that fits holds.
_OUTPUTS = (
    ("claude-*-5*", 128_000),
    ("claude-opus-4-[678]*", 128_000),
    ("claude-sonnet-4-6*", 128_000),
    ("claude-*-4-5*", 64_000),
    ("claude-opus-4*", 32_000),
    ("claude-*-4*", 64_000),
    ("gpt-5*-chat*", 16_384),
    ("gpt-5*", 128_000),
    ("gpt-6*", 128_000),
    ("o[134]*", 100_000),
    ("gpt-4.1*", 32_768),
    ("gpt-4o*", 16_384),
)


def most_output(price_list: str, model: str, told: Mapping[str, int]) -> int | None:
    """Return the most tokens that a model can write; None where nobody knows."""
    listed = next((most for pattern, most in _OUTPUTS if fnmatchcase(model, pattern)), None)
    return told.get(model) or listed or context_window(price_list, model)


def most_input(price_list: str, model: str, told: Mapping[str, int]) -> int | None:
    """Return the most tokens that a model can read; None where nobody knows."""
    return told.get(model) or context_window(price_list, model)
