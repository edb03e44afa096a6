"""Agents that a program gives to `muster.open`: functions, objects of the protocol, and settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeGuard, runtime_checkable

from muster.agents.base import Agent
from muster.agents.function import FunctionAgent
from muster.app.agent_kinds.base import profile_of
from muster.domain.call import Reply, Request
from muster.domain.canonical import noun_of
from muster.domain.errors import BadArgument, BadConfiguration
from muster.settings import Settings
from muster.settings.file import Misfit, read_agent
from muster.settings.sections import AgentSection, PythonSection


@runtime_checkable
class NamedLater(Protocol):
    """What becomes an agent when it is given under a name."""

    def named(self, name: str) -> Agent:
        """Return the agent of this name."""


AgentFunction = Callable[[Request], Awaitable[str | Mapping[str, object] | Reply]]
GivenAgent = AgentFunction | Agent | NamedLater | Mapping[str, object]

FORMS = 'give an async function of a Request, an object of the protocol Agent, or settings such as {"kind": "openai"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAgents:
    """The agents of a program: how they are declared, and those that it made itself."""

    sections: Mapping[str, AgentSection] = field(default_factory=dict)  # of all
    made: Mapping[str, Agent] = field(default_factory=dict)

    def declared_in(self, settings: Settings) -> Settings:
        """Return settings that declare them as well, in place of agents of the same names."""
        return replace(settings, agents={**settings.agents, **self.sections}) if self.sections else settings


def read_given(agents: Mapping[str, GivenAgent]) -> GivenAgents:
    """Read what a program gave; raises BadArgument for what cannot be an agent."""
    if not isinstance(agents, Mapping):
        raise BadArgument(
            f"agents must be a mapping of names to agents, not {noun_of(agents)}",
            suggestions=('write agents={"critic": critic}',),
        )
    sections: dict[str, AgentSection] = {}
    made: dict[str, Agent] = {}
    for name, given in agents.items():
        _require_name(name)
        if isinstance(given, Mapping):
            sections[name] = _read_settings(name, given)
            continue
        sections[name] = section = PythonSection(kind="python", function=_place_of(given))
        if isinstance(given, NamedLater) and not isinstance(given, type):
            made[name] = given.named(name)
        else:
            made[name] = given if _is_agent(given) else _function(name, section, given)
    return GivenAgents(sections=sections, made=made)


def _require_name(name: object) -> None:
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise BadArgument(f"{name!r} cannot be the name of an agent", suggestions=("use a printable word",))


def _read_settings(name: str, given: Mapping[str, object]) -> AgentSection:
    try:
        return read_agent(name, given)
    except Misfit as misfit:
        raise BadArgument(f"agents: {misfit}", suggestions=("see the kinds of agents in docs/AGENTS.md",)) from misfit


def _is_agent(given: object) -> TypeGuard[Agent]:
    methods = all(callable(getattr(given, name, None)) for name in ("quote", "call", "close"))
    return methods and hasattr(given, "profile") and not isinstance(given, type)


def _function(name: str, section: PythonSection, given: object) -> Agent:
    if not callable(given) or isinstance(given, type):
        raise BadArgument(f"agents: {name!r} is {given!r}, which is not an agent", suggestions=(FORMS,))
    try:
        return FunctionAgent(profile=profile_of(name, section), function=given)
    except BadConfiguration as error:
        raise BadArgument(error.message, suggestions=error.suggestions) from None


def _place_of(given: object) -> str:
    """Return where an agent was defined, as muster.toml would name it."""
    named = given if hasattr(given, "__qualname__") else type(given)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"
