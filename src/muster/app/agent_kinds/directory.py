"""The agents of this process, made from their names and the settings, each once."""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muster.agents.base import Agent, BatchAgent, Batching
from muster.agents.capabilities import capabilities_of, max_output_of, takes_geo, traits_of
from muster.agents.human import HumanAgent
from muster.agents.media import media_support_of
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.base import MODEL_SETTINGS, UnreadyAgent, profile_of
from muster.app.agent_kinds.keys import Keys
from muster.app.agent_kinds.providers import BatchAgents, ModelEntry, api_of, wires_of
from muster.domain.agent import Command, Profile
from muster.domain.batch import BatchEndpoint
from muster.domain.call import Request, ask
from muster.domain.dispatch import LIVE, Dispatch, Fallback, Mode
from muster.domain.effort import EFFORT, EFFORT_MARK, EFFORTS, require_output, split_effort
from muster.domain.errors import BadConfiguration, NotFound, did_you_mean
from muster.domain.flaw import nearest
from muster.domain.price import Price, ServiceTier
from muster.domain.provider import OPENAI, PROVIDERS, Provider
from muster.domain.script import Script
from muster.domain.wire import WireName
from muster.settings import Settings
from muster.settings.sections import (
    AgentSection,
    ClaudeSection,
    CliSection,
    HttpSection,
    HumanSection,
    ModelSection,
    ProgramSection,
    PythonSection,
    tiers_of,
)

if TYPE_CHECKING:
    from muster.agents.http.client import BatchHttp, Http
    from muster.agents.model_list import OfferedModel
    from muster.agents.upstream.agent import Upstream


class AgentDirectory:
    """Finds agents: `provider/model`, `sim/NAME`, or a name declared in muster.toml.

    Whatever speaks to an agent is loaded when one of its kind is first asked for: most commands ask nobody.
    """

    def __init__(
        self,
        settings: Settings,
        processes: ProcessRegistry,
        *,
        load_script: Callable[[Path], Script],
        allow_unpriced: bool = False,
        keyless: bool = False,
        http: "BatchHttp | None" = None,
        given: Mapping[str, Agent] | None = None,
        hide: Callable[[str], None] = lambda _: None,  # keeps a key out of what is stored
    ) -> None:
        self._settings = settings
        self._keyless = keyless  # nobody is going to be asked: prices are known without a key
        self._load_script = load_script
        self._allow_unpriced = allow_unpriced
        self._http = http
        self._processes = processes
        self._keys = Keys(settings, processes, self._client, hide=hide, keyless=keyless)
        self._found = dict(given or {})  # those that the program made itself are there from the start
        self._batchings: dict[str, Batching] = {}
        self._flex: dict[str, Agent] = {}

    @cached_property
    def _batch_agents(self) -> BatchAgents:
        """The agents that take batches, by endpoint."""
        return BatchAgents(self._client)

    @cached_property
    def _own(self) -> "OwnAgents":
        """The maker of agents that are the user's own."""
        return OwnAgents(self._settings, self._processes, self._client, unpriced_ok=self._allow_unpriced)

    def find(self, name: str) -> Agent:
        """Return the agent, or raise BadConfiguration with what would do."""
        agent = self._found.get(name)
        if agent is None:
            agent = self._found[name] = self._make(name)
        return agent

    def command(self, command: Command) -> Agent:
        """Return the agent that runs a command."""
        return self._own.command(command)

    def upstream(self, name: str, model: str) -> "Upstream":
        """Return what asks a model for foreign programs; raises BadConfiguration for an upstream that is not set."""
        entry, make = self._upstream_entry(name), load("upstreams:make_upstream")
        key, http = self._keys.of(entry), self._keys.client(entry)
        unpriced = self._allow_unpriced
        found: Upstream = cast(Any, make)(entry, model, key, http, self._settings.gateway, unpriced_ok=unpriced)
        return found

    def upstream_api(self, name: str) -> str:
        """Return the API that an upstream of the gateway speaks; raises BadConfiguration for one that is not set."""
        return self._upstream_entry(name).api

    def _upstream_entry(self, name: str) -> ModelEntry:
        upstreams = self._settings.gateway.upstreams
        known = upstreams.get(name)
        if known is None:
            raise BadConfiguration(
                f"the gateway has no upstream {name!r}", suggestions=(f"use {' or '.join(upstreams)}",)
            )
        return self._entry_of(known if known in self._settings.agents else f"{known}/any")

    def batching(self, name: str) -> Batching | None:
        """Return how the agent is asked in batches; None for one without a provider."""
        self.find(name)  # raises BadConfiguration for a name that nobody has
        if self._is_scripted(name) or not isinstance(self._section(name), ModelSection | None):
            return None
        if name not in self._batchings:
            entry = self._entry(name)
            if not PROVIDERS[entry.provider].batches:
                raise BadConfiguration(
                    f"agent {name!r} cannot be asked in batches: nothing here speaks those of {entry.provider}",
                    suggestions=("ask it live: --dispatch live",),
                )
            if entry.form is WireName.RESPONSES and entry.provider != OPENAI:
                raise BadConfiguration(
                    f"agent {name!r} cannot be asked in batches: nothing here speaks those of Responses at "
                    f"{entry.provider}",
                    suggestions=("ask it live: --dispatch live", 'or set wire = "chat" in its section'),
                )
            if entry.headers or entry.query:
                raise BadConfiguration(
                    f"agent {name!r} cannot be asked in batches: they are handed in without the headers of its section",
                    suggestions=("ask it live: --dispatch live",),
                )
            self._batchings[name] = self._make_batching(entry)
        return self._batchings[name]

    def flex(self, name: str) -> Agent | None:
        """Return the agent that asks the same in the tier flex; None for one whose provider has no such tier."""
        self.find(name)  # raises BadConfiguration for a name that nobody has
        if self._is_scripted(name) or not isinstance(self._section(name), ModelSection | None):
            return None
        if name not in self._flex:
            entry = replace(self._entry(name), ordered=ServiceTier.FLEX)
            if ServiceTier.FLEX not in tiers_of(entry.provider):
                return None
            self._flex[name] = self._model(entry)
        return self._flex[name]

    async def offered(self, name: str) -> "Sequence[OfferedModel]":
        """Return the models that a provider offers, or the server of a declared model; raises what it answers."""
        declared = self._settings.agents.get(name)
        if declared is None and name not in PROVIDERS:
            ways = (f"name one of {', '.join(PROVIDERS)}", "or a model that is declared in muster.toml")
            raise BadConfiguration(
                f"unknown provider {name!r}",
                suggestions=(*did_you_mean([near] if (near := nearest(name, PROVIDERS)) else []), *ways),
            )
        if declared is not None and (not isinstance(declared, ModelSection) or declared.kind == "scripted"):
            raise BadConfiguration(
                f"agent {name!r} is no model of a provider, which could list others",
                suggestions=(f"name a provider: {', '.join(sorted(PROVIDERS))}",),
            )
        entry = self._entry_of(name if declared is not None else f"{name}/any")
        entry = replace(entry, profile=replace(entry.profile, name=name))
        listing: Any = load("listing:offered")
        found: Sequence[OfferedModel] = await listing(entry, self._keys.of(entry), self._keys.client(entry))
        return found

    def uncounted(self, name: str) -> str:
        """Return why the tokens of a request to an agent cannot be counted before it is sent; empty: they can."""
        if self._is_scripted(name) or not isinstance(self._section(name), ModelSection | None):
            return "no provider counts its tokens"
        entry = self._entry(name)
        if entry.counts:
            return ""
        return f"{entry.provider} has no free endpoint that counts the tokens of its requests"

    async def count_tokens(self, name: str, request: Request) -> int:
        """Return how many tokens go in with a request, as its provider counts them; raises what it answers instead."""
        entry, counting = self._entry(name), load("counting:counted")
        tokens: int = await cast(Any, counting)(entry, self._keys.of(entry), self._keys.client(entry), request)
        return tokens

    def price(self, name: str) -> Price | None:
        """Return the standard price of a model, if it is known."""
        return self._entry(name).price()

    def mode_of(self, name: str, wanted: Mode) -> Mode:
        """Return how an agent is asked in a run that wants a mode: live where it has neither batches nor flex."""
        other = {Mode.BATCH: self.batching, Mode.FLEX: self.flex}.get(wanted)
        return wanted if other is not None and other(name) is not None else Mode.LIVE

    @property
    def declared(self) -> tuple[str, ...]:
        """Return the names of the agents in muster.toml or given to `open`."""
        return tuple(self._settings.agents)

    def _section(self, name: str) -> AgentSection | None:
        """Return the section of an agent; one that is asked with an effort of its own shares it."""
        return self._settings.agents.get(self._named(name)[0])

    def _named(self, name: str) -> tuple[str, str | None]:
        """Return the name of an agent without an effort, and the effort that stands behind it."""
        is_plain = name in self._settings.agents or EFFORT_MARK not in name
        return (name, None) if is_plain else split_effort(name)

    def has_maximum(self, name: str) -> bool:
        """Return whether the cost of a call has a maximum: not without a price, nor if the agent reports any cost."""
        section = self._section(name)
        if isinstance(section, HumanSection | ClaudeSection):
            return True  # a person costs nothing, and Claude Code is told what it may spend
        if isinstance(section, ProgramSection) and section.mode == "plain":
            return True  # it cannot report a cost
        if section is not None and not isinstance(section, ModelSection):
            return section.budget_usd is not None or getattr(section, "price", None) is not None
        return self._is_scripted(name) or self._entry(name).price() is not None

    def _is_scripted(self, name: str) -> bool:
        section = self._section(name)
        return name.startswith("sim/") if section is None else section.kind == "scripted"

    def changes_files(self, name: str) -> bool:
        """Return whether an agent is expected to change files in the folder that it works in."""
        return isinstance(self._section(name), CliSection | ClaudeSection)

    def takes_mcp_servers(self, name: str) -> bool:
        """Return whether an agent can be told of an MCP server for one call."""
        return isinstance(self._section(name), CliSection | ClaudeSection)

    def is_retried(self, name: str) -> bool:
        """Return whether a call is tried again after an unknown outcome; processes of ours are not."""
        return not isinstance(self._section(name), ProgramSection | CliSection | ClaudeSection | HumanSection)

    def is_person(self, name: str) -> bool:
        """Return whether an agent is a person."""
        return isinstance(self._section(name), HumanSection)

    def takes_prompts(self, name: str) -> bool:
        """Return whether an agent does what a prompt says; programs of the exec protocol know two phases only."""
        section = self._section(name)
        return not (isinstance(section, ProgramSection) and section.mode == "exec")

    def reopen(self, endpoint: BatchEndpoint) -> BatchAgent:
        """Come back to where a batch was handed in, or raise BadConfiguration when the key is missing or another's."""
        key = self._settings.variable(endpoint.variable) if endpoint.variable else None
        return self._batch_agents.reopen(endpoint, key, self._keys.reopened(endpoint))

    async def close(self) -> None:
        """Close every agent."""
        for agent in (*self._found.values(), *self._flex.values()):
            await agent.close()
        await self._keys.close()
        if self._http is not None:
            await self._http.close()

    def _client(self, url: str) -> "BatchHttp":
        """Return the client, or raise BadConfiguration when the environment leaves no way to an address."""
        from muster.agents.http.client import HttpClient, require_way

        network = self._settings.network
        if not self._keyless:
            require_way(url, network)
        if self._http is None:
            self._http = HttpClient(network=network)
        return self._http

    def _make(self, name: str) -> Agent:
        section = self._section(name)
        provider, _, model = name.partition("/")
        if self._is_scripted(name) or (section is not None and not isinstance(section, ModelSection)):
            self._require_no_effort(name)
        if section is None and provider == "sim" and model:
            return load("scripted:scripted")(model)
        if section is None:
            return self._model(self._entry(name))
        if not isinstance(section, ModelSection):
            return self._own.make(name, section)
        if section.kind == "scripted":
            return self._scripted(profile_of(name, section), section)
        return self._model(self._entry(name))

    def _require_no_effort(self, name: str) -> None:
        agent, effort = self._named(name)
        if effort is not None:
            raise BadConfiguration(
                f"agent {agent!r} cannot be asked with an effort: it is no model of a provider",
                suggestions=(f"name it as {agent}", "what a CLI agent or Claude Code may set stands in its section"),
            )

    def _entry(self, name: str) -> ModelEntry:
        agent, effort = self._named(name)
        entry = self._entry_of(agent)
        if effort is None:
            return entry
        own = {**(entry.profile.settings or {}), EFFORT: effort}
        return replace(entry, profile=replace(entry.profile, name=name, settings=own))

    def _entry_of(self, name: str) -> ModelEntry:
        section = self._section(name)
        if isinstance(section, ModelSection):
            return self._declared(name, section)
        provider, _, model = name.partition("/")
        if provider in PROVIDERS and model:
            profile = Profile(
                name=name,
                limiter=f"{provider}:{model}",
                provider=provider,
                model=model,
                settable=MODEL_SETTINGS[PROVIDERS[provider].api],
                capabilities=capabilities_of(provider, model),
                traits=traits_of(model),
                max_output=max_output_of(provider, model),
                media=media_support_of(provider, model),
            )
            return self._known(profile, provider, model, None)
        agent, _, effort = name.rpartition(EFFORT_MARK)
        if agent in self._settings.agents:
            raise BadConfiguration(
                f"agent {name!r}: {effort!r} is not an effort", suggestions=(f"name one of {', '.join(EFFORTS)}",)
            )
        raise BadConfiguration(f"unknown agent {name!r}", suggestions=_suggestions(name, self._settings.agents))

    def _declared(self, name: str, section: ModelSection) -> ModelEntry:
        if section.model is None:
            raise BadConfiguration(f"agent {name!r} has no model", suggestions=(f'add model = "…" to [agents.{name}]',))
        if section.inference_geo is not None and not takes_geo(section.model):
            raise BadConfiguration(
                f"agent {name!r} cannot be asked with inference_geo: inference of {section.model} is in no place",
                suggestions=("leave it out", "or use a model from Claude Opus 4.6 or Sonnet 4.6 on"),
            )
        profile = profile_of(name, section)
        if section.max_tokens is not None:
            require_output(name, section.max_tokens, profile.max_output)
        return self._known(profile, section.kind, section.model, section)

    def _known(self, profile: Profile, provider: str, model: str, section: ModelSection | None) -> ModelEntry:
        known = PROVIDERS[provider]
        own_address = section.base_url if section else None
        base_url = own_address or self._settings.variable(known.base_variable) or self._address(known)
        wires = wires_of(provider, model, base_url, section)
        return ModelEntry(
            profile=profile if wires is None else replace(profile, wires=wires),
            provider=provider,
            model=model,
            base_url=base_url,
            variable=_variable_of(section, None if own_address else known.key_variable),
            section=section,
            headers=self._filled(section.headers if section else {}),
            query=self._filled(section.query if section else {}),
        )

    def _address(self, known: Provider) -> str:
        """Return the address of a provider, unfilled if a place in it is not known: that is told when it is asked."""
        unknown = "unknown" if self._keyless else None  # prices are known without an address
        try:
            return known.address(lambda name: self._settings.variable(name) or unknown)
        except BadConfiguration:
            return known.base_url

    def _filled(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """Return headers or a query with the values of the variables that they name."""
        return {key: self._settings.filled(value) for key, value in values.items()}

    def _scripted(self, profile: Profile, section: ModelSection) -> Agent:
        try:
            script = None if section.script is None else self._load_script(self._settings.folder / section.script)
        except NotFound as error:
            raise BadConfiguration(f"agents.{profile.name}.script: {error.message}") from None
        return load("scripted:make_scripted")(section, profile=profile, script=script)

    def _model(self, entry: ModelEntry) -> Agent:
        try:
            key, http = self._keys.of(entry), self._keys.client(entry)
        except BadConfiguration as error:
            return UnreadyAgent(entry.profile, error)
        return api_of(entry.api).make_model(entry, key, http, unpriced_ok=self._allow_unpriced)

    def _make_batching(self, entry: ModelEntry) -> Batching:
        """Return how a model is asked in batches: in each form of its API, where a request may need another."""
        wires = entry.profile.wires
        own = self._batching_of(entry)
        if wires is None or wires.is_set:
            return own
        chat = self._batching_of(entry.in_form(WireName.CHAT))
        return replace(own, takes=lambda request: wires.of(request) is wires.name, instead=chat)

    def _batching_of(self, entry: ModelEntry) -> Batching:
        tariff, api = entry.tariff(), api_of(entry.api)
        return Batching(
            agent=self._batch_agents.open(
                entry, self._keys.of(entry), self._keys.client(entry), self._keys.account(entry)
            ),
            tariff=tariff,
            encode=api.encoder_of(entry),
            quote=api.quoter(
                entry.profile.name,
                tariff,
                unpriced_ok=self._allow_unpriced,
                near=entry.near() if tariff.live is None else (),
            ),
        )


def _variable_of(section: ModelSection | None, usual: str | None) -> str | None:
    """Return the variable that holds the key of a model; None where it wants none, or a program prints it."""
    if section is None:
        return usual
    return None if section.key_command else section.key_env or usual


def _suggestions(name: str, declared: Iterable[str]) -> tuple[str, ...]:
    from muster.app.agent_kinds.scripted import suggestions  # only when something is wrong

    return suggestions(name, declared, PROVIDERS)


class Agents:
    """Which agents there are, whether one can be asked, and what it needs before it can. `Muster.agents`."""

    def __init__(self, directory: AgentDirectory) -> None:
        self._directory = directory

    def require(self, name: str, request: Request | None = None, dispatch: Dispatch = LIVE) -> None:
        """Raise what would keep an agent from answering a request: no such agent, no key, no price."""
        agent = self._directory.find(name)
        whole = agent.profile.complete(request or ask(""))
        batching = self._directory.batching(name) if dispatch.mode is Mode.BATCH else None
        flex = self._directory.flex(name) if dispatch.mode is Mode.FLEX else None
        if (batching is None and flex is None) or dispatch.fallback is Fallback.LIVE:
            agent.quote(whole)
        if flex is not None:
            flex.quote(whole)
        if batching is not None:
            batching = batching.of(whole)
            shown = agent.profile.media_tokens(whole)
            batching.quote(whole, len(batching.encode(whole, dispatch.cache)) + shown)

    def list(self) -> Sequence[str]:
        """Return the names of the agents in muster.toml or given to `open`; `provider/model` names need neither."""
        return self._directory.declared

    def has_batches(self, name: str) -> bool:
        """Return whether an agent can be asked in batches; one that answers on this machine cannot."""
        return self._directory.batching(name) is not None

    async def models(self, provider: str) -> "Sequence[OfferedModel]":
        """Return the models that a provider offers, or the server of a declared model; asking costs nothing."""
        return await self._directory.offered(provider)

    def is_person(self, name: str) -> bool:
        """Return whether an agent is a person, who is always asked live and whose answer is waited for."""
        return self._directory.is_person(name)

    def has_people(self) -> bool:
        """Return whether muster.toml declares any agent that is a person."""
        return any(map(self._directory.is_person, self._directory.declared))


class OwnAgents:
    """Makes agents that answer on this machine or in the user's own service."""

    def __init__(
        self, settings: Settings, processes: ProcessRegistry, http: "Callable[[str], Http]", *, unpriced_ok: bool
    ) -> None:
        self._settings, self._processes, self._http = settings, processes, http
        self._unpriced_ok = unpriced_ok

    def command(self, command: Command) -> Agent:
        """Make an agent of a command; its folder is relative to that of muster.toml."""
        return load("programs:make_command")(
            command,
            processes=self._processes,
            variables=self._settings.variables,
            folder=self._settings.folder,
        )

    def make(
        self,
        name: str,
        section: ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection | HumanSection,
    ) -> Agent:
        """Make one agent."""
        profile = profile_of(name, section)
        folder, variables = self._settings.folder, self._settings.variables
        process: dict[str, Any] = {"processes": self._processes, "variables": variables, "folder": folder}
        match section:
            case ProgramSection():
                return load("programs:make_program")(name, section, profile=profile, **process)
            case HttpSection():
                try:
                    http = self._http(section.url)
                except BadConfiguration as error:
                    return UnreadyAgent(profile, error)
                service = load("services:make_service")
                return service(name, section, profile=profile, http=http, variables=variables)
            case PythonSection():
                return load("services:make_function")(name, section, profile=profile, folder=folder)
            case ClaudeSection():
                return load("claude:make_claude")(name, section, profile=profile, home=self._settings.home, **process)
            case HumanSection():
                return HumanAgent(profile)
            case CliSection():
                cli = load("programs:make_cli")
                return cli(name, section, profile=profile, unpriced_ok=self._unpriced_ok, **process)


def load(place: str) -> Callable[..., Agent]:
    """Return MODULE:FUNCTION of this folder; each module is loaded when an agent of its kind is first made."""
    module, _, name = place.partition(":")
    found: Callable[..., Agent] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
