"""The agents of this process, made from their names and the settings, each once."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.base import Agent, OnDelta
from muster.agents.http import Http, HttpClient
from muster.agents.openai.live import OpenAIAgent
from muster.agents.openai.wire import MaxTokens
from muster.agents.prices import price_from_toml, price_of
from muster.agents.scripted import PARTS, scripted
from muster.domain.agent import Pace, Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.errors import BadConfiguration
from muster.domain.price import Price
from muster.domain.script import Script
from muster.settings import AgentSection, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A known provider: its API, where its address and key come from."""

    api: str
    base_url: str
    base_variable: str
    key_variable: str | None


PROVIDERS = {
    "anthropic": Provider(
        api="anthropic",
        base_url="https://api.anthropic.com",
        base_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": Provider(
        api="openai",
        base_url="https://api.openai.com/v1",
        base_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
    ),
    "openrouter": Provider(
        api="openai",
        base_url="https://openrouter.ai/api/v1",
        base_variable="OPENROUTER_BASE_URL",
        key_variable="OPENROUTER_API_KEY",
    ),
    "ollama": Provider(
        api="openai", base_url="http://127.0.0.1:11434/v1", base_variable="OLLAMA_BASE_URL", key_variable=None
    ),
}


class UnreadyAgent:
    """An agent without a key: good for replies that are known, an error as soon as it would have to be asked."""

    def __init__(self, profile: Profile, error: BadConfiguration) -> None:
        self._profile, self._error = profile, error

    @property
    def profile(self) -> Profile:
        """Say who this is, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Raise what is missing."""
        raise self._error

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Raise what is missing."""
        raise self._error

    async def close(self) -> None:
        """Give nothing back."""


# OpenAI's own models refuse the old name of the limit; other servers may ignore the new one and write without bound.
_OPENAI_MODELS = re.compile(r"(gpt-|chatgpt-|o\d)")


class AgentDirectory:
    """Finds agents: `provider/model`, `sim/NAME`, or a name declared in muster.toml."""

    def __init__(
        self,
        settings: Settings,
        *,
        load_script: Callable[[Path], Script],
        allow_unpriced: bool = False,
        http: Http | None = None,
    ) -> None:
        self._settings = settings
        self._load_script = load_script
        self._allow_unpriced = allow_unpriced
        self._http = http or HttpClient()
        self._found: dict[str, Agent] = {}

    def find(self, name: str) -> Agent:
        """Give the agent, or raise BadConfiguration with what would do."""
        agent = self._found.get(name)
        if agent is None:
            agent = self._found[name] = self._make(name)
        return agent

    async def close(self) -> None:
        """Close every agent."""
        for agent in self._found.values():
            await agent.close()
        await self._http.close()

    def _make(self, name: str) -> Agent:
        section = self._settings.agents.get(name)
        if section is not None:
            return self._declared(name, section)
        provider, _, model = name.partition("/")
        if provider == "sim" and model:
            return scripted(model)
        if provider in PROVIDERS and model:
            return self._model(Profile(name=name, lane=f"{provider}:{model}"), provider, model, None)
        raise BadConfiguration(f"there is no agent {name!r}", suggestions=self._suggestions())

    def _suggestions(self) -> tuple[str, ...]:
        declared = ", ".join(sorted(self._settings.agents)) or "none yet"
        known = ", ".join(f"{provider}/MODEL" for provider in PROVIDERS)
        return (
            f"name a model: {known}",
            f"or a script that needs no key: {', '.join(f'sim/{script}' for script in PARTS)}",
            f"or an agent declared in muster.toml ({declared})",
        )

    def _declared(self, name: str, section: AgentSection) -> Agent:
        profile = Profile(
            name=name,
            lane=f"{section.base_url or section.kind}:{section.model or name}",
            pace=Pace(
                concurrency=section.concurrency,
                requests_per_minute=section.requests_per_minute,
                tokens_per_minute=section.tokens_per_minute,
            ),
            system=section.system,
            max_tokens=section.max_tokens,
            temperature=section.temperature,
            seed=section.seed,
        )
        if section.kind == "scripted":
            return self._scripted(profile, section)
        if section.model is None:
            raise BadConfiguration(f"agent {name!r} has no model", suggestions=(f'add model = "…" to [agents.{name}]',))
        return self._model(profile, section.kind, section.model, section)

    def _scripted(self, profile: Profile, section: AgentSection) -> Agent:
        script = None if section.script is None else self._load_script(self._settings.folder / section.script)
        price = None if section.price is None else price_from_toml(**section.price.model_dump())
        return scripted(section.model or "echo", script=script, profile=profile, price=price)

    def _model(self, profile: Profile, provider: str, model: str, section: AgentSection | None) -> Agent:
        known = PROVIDERS[provider]
        own_address = section.base_url if section else None
        base_url = own_address or self._settings.variable(known.base_variable) or known.base_url
        variable = (section.key_env if section else None) or (None if own_address else known.key_variable)
        try:
            key = self._key(profile.name, variable)
        except BadConfiguration as error:
            return UnreadyAgent(profile, error)
        price = self._price(provider, model, section)
        if known.api == "anthropic":
            return AnthropicAgent(
                profile=profile,
                model=model,
                key=key,
                price=price,
                http=self._http,
                base_url=base_url,
                unpriced_ok=self._allow_unpriced,
            )
        return OpenAIAgent(
            profile=profile,
            model=model,
            key=key,
            key_variable=variable or "",
            price=price,
            http=self._http,
            base_url=base_url,
            max_tokens=MaxTokens.NEW if _OPENAI_MODELS.match(model) else MaxTokens.OLD,
            unpriced_ok=self._allow_unpriced,
        )

    def _key(self, name: str, variable: str | None) -> str:
        """Give the key; a server with an address of the user's own and no `key_env` wants none."""
        if variable is None:
            return ""
        key = self._settings.variable(variable)
        if key is None:
            raise BadConfiguration(
                f"{name} needs a key and {variable} is not set", suggestions=(f"export {variable}=…",)
            )
        if not key.isascii() or not key.isprintable():
            raise BadConfiguration(
                f"the key in {variable} holds characters that no key has", suggestions=("copy it again",)
            )
        return key

    def _price(self, provider: str, model: str, section: AgentSection | None) -> Price | None:
        if section is not None and section.price is not None:
            return price_from_toml(**section.price.model_dump())
        if section is not None and section.base_url is not None and provider == "openai":
            return None  # a server of the user's own: the price list of another provider says nothing about it
        if provider == "ollama":
            return price_from_toml(0, 0)  # it runs on the user's own machine
        return price_of(provider, model, datetime.now(UTC))
