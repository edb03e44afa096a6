"""Which models can be shown images and documents, and what they count: bounds, never less than a provider counts.

A model that is not listed is not shown any, unless its section says that it can.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase

from muster.agents.prices import context_of
from muster.domain.media import MAX_PAGES, MediaKind, MediaSupport, TokenFormula
from muster.domain.provider import PROVIDERS

_IMAGES = frozenset({MediaKind.IMAGE})
_ALL = frozenset(MediaKind)
_MEGABYTE = 1 << 20
_SMALL_CONTEXT, _PAGES_OF_SMALL_CONTEXT = 200_000, 100  # of Anthropic: fewer pages for models that read less

# Patches of 28 pixels or a token for 750 of them: smaller patches are no less than either.
_ANTHROPIC = TokenFormula(patch=27, most=4_800, unknown=4_800)
# Patches of 32 pixels with a factor of up to 2.46, of which a picture has 2,500 at most; or tiles of 512 pixels.
_OPENAI = TokenFormula(patch=32, hundredths=246, most=6_150, unknown=6_150, tile_base=85, tile=170)
_OPENAI_4O_MINI = TokenFormula(patch=32, hundredths=246, most=6_150, unknown=6_150, tile_base=2_833, tile=5_667)
# What other servers run is not known: as many as any of the formulas gives, and nothing is scaled down.
_OTHER = TokenFormula(patch=20, unknown=16_384, tile_base=85, tile=170)

_CLAUDE = ("claude-[3-9]*", "claude-opus-*", "claude-sonnet-*", "claude-haiku-*", "claude-fable-*", "claude-mythos-*")
_BLIND = ("o1-mini*", "o1-preview*", "o3-mini*", "gpt-4o*-audio*", "gpt-4o*-transcribe*", "gpt-4o*-tts*")
_OPENAI_MODELS = ("gpt-4o*", "chatgpt-4o*", "gpt-4.[15]*", "gpt-4-turbo*", "gpt-[5-9]*", "o1*", "o3*", "o4*")
_OTHERS = ("gemini-*", "grok-4*", "grok-*-vision*", "pixtral*", "llama-4*", "gemma-3*", "gemma3*", "*-vl*", "*vision*")


def media_support_of(
    provider: str, model: str, told: Collection[str] | None = None, *, own_address: bool = False
) -> MediaSupport | None:
    """Return which media a model takes: the kinds that its section tells, else as its name says; None for none."""
    name = model.rpartition("/")[2].lower()
    kinds = _kinds(provider, name, own_address=own_address) if told is None else frozenset(map(MediaKind, told))
    if not kinds:
        return None
    context = None if own_address or MediaKind.DOCUMENT not in kinds else _context_of(provider, model)
    if provider != "anthropic":
        formula = _formula(provider, name, own_address=own_address)
        return MediaSupport(kinds=kinds, formula=formula, context=context)
    return MediaSupport(
        kinds=kinds,
        formula=_ANTHROPIC,
        image_bytes=5 * _MEGABYTE,
        request_bytes=30 * _MEGABYTE,
        pages=MAX_PAGES if context is None or context > _SMALL_CONTEXT else _PAGES_OF_SMALL_CONTEXT,
        context=context,
    )


def _context_of(provider: str, model: str) -> int | None:
    """Return how many tokens a model reads at most, as far as the price list knows."""
    known = PROVIDERS.get(provider)
    return context_of(known.price_list, model.removeprefix(known.publisher)) if known is not None else None


def told_media_support(told: Collection[str]) -> MediaSupport | None:
    """Return which media an agent takes that is no model of a provider: those that its section tells."""
    return MediaSupport(kinds=frozenset(map(MediaKind, told)), formula=_OTHER) if told else None


def _formula(provider: str, name: str, *, own_address: bool) -> TokenFormula:
    if provider != "openai" or own_address or not _fits(name, _OPENAI_MODELS):
        return _OTHER
    return _OPENAI_4O_MINI if name.startswith("gpt-4o-mini") else _OPENAI


def _kinds(provider: str, name: str, *, own_address: bool) -> frozenset[MediaKind]:
    if _fits(name, _BLIND):
        return frozenset()
    if provider == "anthropic":
        return _ALL if _fits(name, _CLAUDE) else frozenset()
    if provider == "openai" and not own_address:
        return _ALL if _fits(name, _OPENAI_MODELS) else frozenset()
    return _IMAGES if _fits(name, (*_CLAUDE, *_OPENAI_MODELS, *_OTHERS)) else frozenset()


def _fits(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
