"""What the settings say of an agent, as the engine sees it."""

from math import inf

from muster.domain.agent import Pace, Profile, Timeouts
from muster.settings.sections import (
    AgentSection,
    ClaudeSection,
    CliSection,
    HttpSection,
    ModelSection,
    ProgramSection,
    PythonSection,
)

# Seconds that a call may take, and how many at once, where muster.toml says nothing.
_PROGRAM = Timeouts(call=300.0, idle=inf)  # one that thinks before it answers says nothing
_CLI = Timeouts(call=3600.0, idle=600.0)
_AT_ONCE = {"program": 16, "cli": 8, "claude-code": 4}  # processes, and a large one each for the last


def profile_of(name: str, section: AgentSection) -> Profile:
    """Make the profile of a declared agent."""
    return Profile(
        name=name,
        lane=_lane(name, section),
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
    )


def _lane(name: str, section: AgentSection) -> str:
    if isinstance(section, ModelSection):
        return f"{section.base_url or section.kind}:{section.model or name}"
    return f"{section.kind}:{name}"


def _timeouts(section: AgentSection) -> Timeouts | None:
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
