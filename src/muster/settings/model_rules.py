"""What the section of a model cannot say: keys that contradict others, and what would cost more than is reserved."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from muster.domain.price import PRICED_TIERS, ServiceTier
from muster.domain.provider import ANTHROPIC, OPENAI, PROVIDERS, KeyStyle, Provider
from muster.settings.sections import ModelSection

Flaw = tuple[str, str]  # a key, and what is wrong with it

# What Muster says itself in the body of a request, or what would cost more than is reserved; with the key to use.
_DEARER = "it would cost more than is reserved"
_UNSEEN = "what is asked, and what it can cost, would not stand in the request"
OWN_FIELDS: Mapping[str, str] = {
    "model": "use model",
    "temperature": "use temperature",
    **dict.fromkeys(("seed", "random_seed"), "use seed"),
    "system": "use system",
    "service_tier": "use service_tier",
    "inference_geo": "use inference_geo",
    "thinking": "use thinking",
    **dict.fromkeys(("reasoning_effort", "reasoning", "output_config"), "use effort"),
    **dict.fromkeys(
        (
            "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_length",
            "max_tool_calls", "n_predict", "num_predict", "generationconfig", "generation_config",
        ),
        "use max_tokens",
    ),
    **dict.fromkeys(("messages", "tools", "tool_choice", "response_format", "stop", "stop_sequences"), ""),
    **dict.fromkeys(("stream", "stream_options", "top_p", "input", "instructions", "include", "extra_body"), ""),
    **dict.fromkeys(("functions", "function_call"), ""),
    **dict.fromkeys(("background", "conversation", "previous_response_id", "prompt"), _UNSEEN),
    **dict.fromkeys(
        (
            "n", "best_of", "num_generations", "num_return_sequences", "candidate_count", "candidatecount",
            "use_beam_search", "speed", "web_search_options", "search_parameters", "plugins", "mcp_servers",
            "container", "context_management", "modalities", "audio", "image", "image_config", "prediction",
            "moderation", "compound_custom",
        ),
        _DEARER,
    ),
    **dict.fromkeys(("models", "route", "provider", "preset", "fallbacks"), "another model could answer, at its price"),
}  # fmt: skip
# What else a request may say to a server whose prices are in a list: it changes what is written, not what that costs.
_SAMPLING = (
    "top_k", "top_a", "min_p", "typical_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "logit_bias",
    "logprobs", "top_logprobs", "mirostat_lr", "mirostat_target",
)  # fmt: skip
_FORM = (
    "parallel_tool_calls", "verbosity", "text", "truncation", "grammar", "guided_*", "chat_template_kwargs",
    "safe_prompt", "reasoning_split", "reasoning_format", "include_reasoning", "enable_thinking", "disable_reasoning",
    "clear_thinking", "context_length_exceeded_behavior",
)  # fmt: skip
_LABELS = (
    "user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "usage",
)  # fmt: skip
ALLOWED_FIELDS: Mapping[str, tuple[str, ...]] = {
    ANTHROPIC: ("top_k", "metadata"),
    OPENAI: (*_SAMPLING, *_FORM, *_LABELS),
}


def model_flaws(section: ModelSection) -> Iterator[Flaw]:
    """Yield what is wrong with the section of a model."""
    yield from _body_flaws(section)
    yield from _tier_flaws(section)
    yield from _geo_flaws(section)
    yield from _wire_flaws(section)
    yield from _thinking_flaws(section)
    yield from _key_flaws(section)
    yield from _header_flaws(section)


def _body_flaws(section: ModelSection) -> Iterator[Flaw]:
    provider = PROVIDERS.get(section.kind)
    allowed = () if provider is None or _is_own_server(section, provider) else ALLOWED_FIELDS[provider.api]
    for key in section.extra:
        name = key.strip().lower()
        if name in OWN_FIELDS:
            yield "extra", f"{key!r} cannot be set there{f': {OWN_FIELDS[name]}' if OWN_FIELDS[name] else ''}"
        elif allowed and not any(fnmatchcase(key, pattern) for pattern in allowed):
            yield "extra", f"{key!r} may cost more than is reserved; {section.kind} can be sent {', '.join(allowed)}"


def _is_own_server(section: ModelSection, provider: Provider) -> bool:
    """Return whether the server is the user's own, or its price is what the section says and no list has."""
    return provider.free or (section.base_url is not None and section.price is not None)


def _tier_flaws(section: ModelSection) -> Iterator[Flaw]:
    """Yield a tier of service that the provider does not have, and a price for a tier that has none of its own."""
    tier = section.service_tier
    if tier is not None and tier not in section.tiers:
        has = f"of {section.kind} must be {' or '.join(section.tiers)}" if section.tiers else f"{section.kind} has none"
        hint = (
            f" ({tier} may serve auto)"
            if section.kind in PROVIDERS and tier == PROVIDERS[section.kind].auto_tier
            else ""
        )
        yield "service_tier", f"{has}, not {tier!r}{hint}"
    if section.tier_price is None or tier in PRICED_TIERS:
        return
    other = PROVIDERS[section.kind].auto_tier if section.kind in PROVIDERS else ""
    if not other:
        yield "tier_price", f"needs a service_tier, one of {', '.join(PRICED_TIERS)}"
    elif tier not in (None, ServiceTier.AUTO):
        yield "tier_price", f"is the price of the tier {other}, which never serves service_tier = {tier!r}"


def _geo_flaws(section: ModelSection) -> Iterator[Flaw]:
    provider = PROVIDERS.get(section.kind)
    if section.inference_geo is not None and (provider is None or not provider.geos):
        yield "inference_geo", f"{section.kind} cannot be told where inference takes place"


def _wire_flaws(section: ModelSection) -> Iterator[Flaw]:
    """Yield a form of the API that the server does not have, and what that form has no field for."""
    if section.wire is None:
        return
    provider = PROVIDERS.get(section.kind)
    if provider is None or provider.api != OPENAI:
        yield "wire", f"is of OpenAI's API, which {section.kind} does not speak"
        return
    if section.wire == "chat":
        return
    if not provider.responses:
        yield "wire", f"{section.kind} has chat completions only; leave wire out"
    for name in ("seed", "max_tokens_field"):
        if getattr(section, name) is not None:
            yield name, 'goes with chat completions only: leave it out, or set wire = "chat"'


def _thinking_flaws(section: ModelSection) -> Iterator[Flaw]:
    if section.thinking_display is not None and section.thinking in (None, "off"):
        yield "thinking_display", 'needs thinking, for example thinking = "adaptive"'


def _key_flaws(section: ModelSection) -> Iterator[Flaw]:
    if section.key_command and section.key_env is not None:
        yield "key_command", "cannot stand beside key_env: say one of them"
    if section.key_command and not section.key_command[0]:
        yield "key_command", 'must name a program, such as ["gcloud", "auth", "print-access-token"]'
    if not section.key_command and section.key_lifetime_secs is not None:
        yield "key_lifetime_secs", "needs a key_command"
    if not section.key_command and section.key_pass_env:
        yield "key_pass_env", "needs a key_command"


def _header_flaws(section: ModelSection) -> Iterator[Flaw]:
    """Yield headers that would replace the key, or at the provider's own address stand beside it."""
    provider = PROVIDERS.get(section.kind)
    key = None if provider is None else _key_source(section, provider)
    if provider is None or key is None:
        return
    taken = {provider.key_style} if section.base_url is not None else set(KeyStyle)
    for name in section.headers:
        if name.strip().lower() in taken:
            yield "headers", f"{name!r} cannot stand beside the key, which {key} names: leave one of them out"


def _key_source(section: ModelSection, provider: Provider) -> str | None:
    """Return what names the key that is sent; None where none is, as to an address of the user's own."""
    if section.key_env is not None or section.key_command:
        return "key_env" if section.key_env is not None else "key_command"
    return provider.key_variable if section.base_url is None else None
