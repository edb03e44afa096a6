"""What models can be told about their thinking, by provider and name, and how much they write.

A model that is not listed is asked as told, and not taken for one that thinks unless it is told to.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from muster.domain.effort import (
    ADAPTIVE,
    BETWEEN_TOOLS,
    BUDGET,
    NO_TRAITS,
    OFF,
    UP_TO_HIGH,
    ModelCapabilities,
    OutputTraits,
)

_ALL = ("low", "medium", "high", "xhigh", "max")
_WITHOUT_XHIGH = ("low", "medium", "high", "max")
_REASONING = ("none", "low", "medium", "high", "xhigh")
_MINIMAL = ("minimal", *UP_TO_HIGH)
_BUDGETS = ModelCapabilities(thinking=(BUDGET, OFF))
_NOTHING = ModelCapabilities()


def _adaptive(*more: str, **traits: tuple[str, ...]) -> ModelCapabilities:
    return ModelCapabilities(efforts=_ALL, thinking=(ADAPTIVE, *more), **traits)


# The first pattern that fits holds; longer names stand before their beginnings.
_ANTHROPIC = (
    ("claude-opus-5-5*", _adaptive()),
    ("claude-sonnet-5-5*", _adaptive(BETWEEN_TOOLS, off_at=UP_TO_HIGH)),
    ("claude-haiku-5-5*", _adaptive(OFF, off_at=UP_TO_HIGH)),
    ("claude-fable-5*", _adaptive()),
    ("claude-mythos-5*", _adaptive()),
    ("claude-opus-5*", _adaptive(OFF, off_at=UP_TO_HIGH)),
    ("claude-sonnet-5*", _adaptive(OFF)),
    ("claude-opus-4-[78]*", _adaptive(OFF)),
    ("claude-*-4-6*", ModelCapabilities(efforts=_WITHOUT_XHIGH, thinking=(ADAPTIVE, OFF, BUDGET))),
    ("claude-opus-4-5*", ModelCapabilities(efforts=UP_TO_HIGH, thinking=(BUDGET, OFF))),
    ("claude-*-4*", _BUDGETS),
)
_OPENAI = (
    ("gpt-6*", ModelCapabilities(efforts=(*_REASONING, "max"))),
    ("gpt-5.[2456]*", ModelCapabilities(efforts=_REASONING)),
    ("gpt-5.1*", ModelCapabilities(efforts=("none", *UP_TO_HIGH))),
    ("gpt-5", ModelCapabilities(efforts=_MINIMAL)),
    ("gpt-5-*", ModelCapabilities(efforts=_MINIMAL)),
    ("o[34]*", ModelCapabilities(efforts=UP_TO_HIGH)),
    ("gpt-4*", _NOTHING),
)
_MODELS = {
    "anthropic": _ANTHROPIC,
    "bedrock-claude": _ANTHROPIC,
    "vertex-claude": _ANTHROPIC,
    "openai": _OPENAI,
}
_CLAUDE = "claude-"


def capabilities_of(provider: str, model: str) -> ModelCapabilities | None:
    """Return what a model can be told about its thinking; None for one that nobody has listed."""
    listed: Iterable[tuple[str, ModelCapabilities]] = _MODELS.get(provider, ())
    name = _without_place(model)
    return next((found for pattern, found in listed if fnmatchcase(name, pattern)), None)


def _without_place(model: str) -> str:
    """Return the name of a model as its maker writes it: Bedrock has a region and the maker before it."""
    return model[max(0, model.find(_CLAUDE)) :]


# Models from before Claude Opus 4.6: their inference cannot be kept in a place, and costs the same everywhere.
_WITHOUT_GEO = ("claude-[123]*", "claude-instant*", "claude-*-4", "claude-*-4-[0-5]*", "claude-*-4-latest")


def takes_geo(model: str) -> bool:
    """Return whether inference of a model of Anthropic can be kept in a place; of one that nobody knows it can."""
    return not any(fnmatchcase(model, pattern) for pattern in _WITHOUT_GEO)


_ASKED_TO_THINK = OutputTraits(needs_thinking=True)
_REASONS = OutputTraits(thinks_at="medium")
# By the name alone, whoever serves the model: others than its maker write a dot or a hyphen between numbers, and a
# folder before it. The first pattern that fits holds.
_TRAITS = (
    ("claude-opus-5[.-]5*", OutputTraits(thinks_at="high", most=128_000)),
    ("claude-haiku-5[.-]5*", OutputTraits(thinks_at="high", most=128_000)),
    ("claude-opus-4[.-]1*", OutputTraits(needs_thinking=True, most=32_000)),
    ("claude-*-4[.-]5*", OutputTraits(needs_thinking=True, most=64_000)),
    ("claude-*-4*", _ASKED_TO_THINK),
    ("claude-[a-z]*-5*", OutputTraits(thinks_at="high")),
    ("claude-*", _ASKED_TO_THINK),
    ("gpt-5*-chat*", NO_TRAITS),
    ("gpt-5-pro*", OutputTraits(thinks_at="medium", most=272_000)),
    ("gpt-5*", OutputTraits(thinks_at="medium", most=128_000)),
    ("gpt-6*", _REASONS),
    ("o[34]*", OutputTraits(thinks_at="medium", most=100_000)),
    *((name, _REASONS) for name in ("gemini-2.5*", "gemini-[3-9]*", "grok-4*", "grok-3-mini*", "magistral*")),
    *((name, _REASONS) for name in ("deepseek-r*", "qwen3*", "qwq*", "gpt-oss*", "*-thinking*", "*-reasoning*")),
)


def traits_of(model: str) -> OutputTraits:
    """Return how much a model writes, as far as its name tells."""
    name = _without_place(model.rpartition("/")[2].lower())
    return next((found for pattern, found in _TRAITS if fnmatchcase(name, pattern)), NO_TRAITS)


def max_output_of(provider: str, model: str, *, own_address: bool = False) -> int | None:
    """Return the limit above which the maker of a model refuses a request; None where the limit is not known.

    At an address of the user's own a name of OpenAI's may be that of any model.
    """
    if provider not in _MODELS or (own_address and _MODELS[provider] is _OPENAI):
        return None
    return traits_of(model).most
