"""What agents of all kinds need to be made: a profile, an environment, and a place for what is missing."""

from collections.abc import Mapping
from math import inf

from muster.agents.base import OnDelta
from muster.agents.capabilities import capabilities_of, max_output_of, traits_of
from muster.agents.media import media_support_of, told_media_support
from muster.agents.processes import system
from muster.agents.processes.process import environment_of
from muster.domain.agent import Pace, Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.effort import EFFORT, EXTRA, NO_TRAITS, SHOWS, THINKS, ModelCapabilities
from muster.domain.errors import BadConfiguration
from muster.domain.media import MediaSupport
from muster.domain.provider import PROVIDERS
from muster.settings.sections import (
    AgentSection,
    ClaudeSection,
    CliSection,
    HttpSection,
    HumanSection,
    ModelSection,
    ProgramSection,
    PythonSection,
)

# Seconds that a call may take, and how many at once, where muster.toml says nothing.
_PROGRAM = Timeouts(call=300.0, idle=inf)  # one that thinks before it answers says nothing
_CLI = Timeouts(call=3600.0, idle=600.0)
# What a task may set for its calls.
_SETTABLE = {
    "cli": frozenset({"model", "budget_usd", "granted_tools"}),
    "claude-code": frozenset(
        {"model", "effort", "permission_mode", "max_turns", "tools", "granted_tools", "budget_usd"}
    ),
}
# What a call may set of a model, by the API that it is asked through.
MODEL_SETTINGS = {"anthropic": frozenset({EFFORT, THINKS, SHOWS}), "openai": frozenset({EFFORT})}
_AT_ONCE = {"program": 16, "cli": 8, "claude-code": 4}  # processes, and a large one each for the last


AnsweringSection = ModelSection | ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection


def profile_of(name: str, section: AgentSection) -> Profile:
    """Make the profile of a declared agent."""
    if isinstance(section, HumanSection):
        timeouts = Timeouts(call=section.timeout_secs or inf)
        return Profile(name=name, limiter=_limiter(name, section), timeouts=timeouts, person=True)
    return Profile(
        name=name,
        limiter=_limiter(name, section),
        provider=section.kind if isinstance(section, ModelSection) else "",
        model=(section.model or "") if isinstance(section, ModelSection) else "",
        pace=Pace(
            concurrency=section.concurrency or _AT_ONCE.get(section.kind, Pace().concurrency),
            requests_per_minute=section.requests_per_minute,
            tokens_per_minute=section.tokens_per_minute,
            gets_ahead=section.kind not in _AT_ONCE,
        ),
        system=section.system,
        max_tokens=section.max_tokens,
        temperature=section.temperature,
        seed=section.seed,
        timeouts=_timeouts(section),
        phased=isinstance(section, ProgramSection),
        timed=section.timeout_secs is not None if isinstance(section, ProgramSection) else False,
        settable=_SETTABLE.get(section.kind) or _model_settings(section),
        settings=_settings(section),
        capabilities=_capabilities(section),
        traits=traits_of(section.model or "") if isinstance(section, ModelSection) else NO_TRAITS,
        max_output=_max_output(section),
        keeps_budget=_keeps_budget(section),
        media=_media(section),
    )


def _model_settings(section: AnsweringSection) -> frozenset[str]:
    if not isinstance(section, ModelSection) or section.kind not in PROVIDERS:
        return frozenset()
    return MODEL_SETTINGS[PROVIDERS[section.kind].api]


def _settings(section: AnsweringSection) -> Mapping[str, Json] | None:
    """Return what the section of a model says of its thinking."""
    if not isinstance(section, ModelSection):
        return None
    said: dict[str, Json] = {
        EFFORT: section.effort,
        THINKS: section.thinking,
        SHOWS: section.thinking_display,
        EXTRA: section.extra or None,
    }
    return {name: value for name, value in said.items() if value is not None} or None


def _capabilities(section: AnsweringSection) -> ModelCapabilities | None:
    """Return what a declared model takes: as its section says, else as is known of its name."""
    if not isinstance(section, ModelSection):
        return None
    if section.capabilities is not None:
        return ModelCapabilities(efforts=section.capabilities.effort, thinking=section.capabilities.thinking)
    return capabilities_of(section.kind, section.model or "")


def _max_output(section: AnsweringSection) -> int | None:
    if not isinstance(section, ModelSection):
        return None
    return max_output_of(section.kind, section.model or "", own_address=section.base_url is not None)


def _media(section: AnsweringSection) -> MediaSupport | None:
    """Return the images and documents that an agent can be shown: as its section says, else as its model's name."""
    if isinstance(section, ModelSection) and section.kind in PROVIDERS:
        own = section.base_url is not None
        return media_support_of(section.kind, section.model or "", section.media, own_address=own)
    return told_media_support(section.media or ()) if isinstance(section, ModelSection | PythonSection) else None


def _keeps_budget(section: AnsweringSection) -> bool:
    """Return whether an agent is told what a call may cost, and stops there."""
    return isinstance(section, ClaudeSection) or (
        isinstance(section, CliSection) and any("{budget}" in part for part in (*section.command, *section.resume))
    )


def _limiter(name: str, section: AgentSection) -> str:
    if isinstance(section, ModelSection):
        return f"{section.base_url or section.kind}:{section.model or name}"
    return f"{section.kind}:{name}"


def _timeouts(section: AnsweringSection) -> Timeouts | None:
    match section:
        case ModelSection():
            return None
        case HttpSection() | PythonSection():
            return None if section.timeout_secs is None else Timeouts(call=section.timeout_secs)
        case ProgramSection():
            return Timeouts(call=section.timeout_secs or _PROGRAM.call, idle=section.idle_secs or _PROGRAM.idle)
        case ClaudeSection() | CliSection():
            call = section.timeout_secs or _CLI.call
            return Timeouts(call=call, idle=section.idle_secs or min(call, _CLI.idle))


def environment_for(
    name: str, section: ProgramSection | CliSection | ClaudeSection, variables: Mapping[str, str]
) -> dict[str, str]:
    """Build the environment of an agent's processes; raises BadConfiguration when one that it is passed is not set."""
    for variable in section.pass_env:
        if variable not in variables:
            raise BadConfiguration(
                f"agent {name!r} needs {variable}, which is not set",
                suggestions=(f"export {variable}=…", f"or remove it from pass_env in [agents.{name}]"),
            )
    environment = environment_of(variables, named=section.pass_env, own=section.env)
    if system.TOKEN_VARIABLE in variables:  # we are a process of another registry ourselves: what we start is its too
        environment[system.TOKEN_VARIABLE] = variables[system.TOKEN_VARIABLE]
    return environment


class UnreadyAgent:
    """An agent that lacks a key or a variable: good for replies that are known, an error as soon as it is asked."""

    def __init__(self, profile: Profile, error: BadConfiguration) -> None:
        self._profile, self._error = profile, error

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Raise what is missing."""
        raise self._error

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Raise what is missing."""
        raise self._error

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
