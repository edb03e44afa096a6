"""Claude Code, made from its section."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from muster.agents.base import Agent
from muster.agents.claude_code.agent import ClaudeCodeAgent
from muster.agents.claude_code.setup import ADDRESS, Servers, Setup, with_key, with_subscription
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.base import UnreadyAgent, environment_for
from muster.domain.agent import Profile
from muster.domain.canonical import plain_json
from muster.domain.errors import BadArgument, BadConfiguration
from muster.domain.money import Lane, Microdollars
from muster.settings.sections import ClaudeSection

DEFAULT_MOST = Microdollars(1_000_000)
HOMES = "claude"  # in the home of muster: a folder for each agent, with its sessions
SERVERS = Path("private", "mcp.json")  # in its home folder, in which it need not live


def make_claude(
    name: str,
    section: ClaudeSection,
    *,
    profile: Profile,
    processes: ProcessRegistry,
    variables: Mapping[str, str],
    folder: Path,
    home: Path,
) -> Agent:
    """Make the agent; one that has no key yet raises as soon as it would have to be asked."""
    reserve = section.reserve()
    most = DEFAULT_MOST if reserve is None else Microdollars(reserve)
    try:
        key = "" if section.subscription else _key(name, section, variables)
        _check_reserve(name, section, most)
        child = environment_for(name, section, variables)
        servers = _servers(name, section, home)
    except BadConfiguration as error:
        return UnreadyAgent(profile, error)
    own_home = None if section.subscription else home_of(home, name)
    return ClaudeCodeAgent(
        profile=profile,
        processes=processes,
        setup=_setup(section, key, own_home, _environment(section, child, key, own_home, variables), servers, folder),
        most=most,
        lane=Lane.IMPUTED if section.subscription else Lane.BILLED,
    )


def home_of(home: Path, name: str) -> Path:
    """Return the home folder of an agent; always the same, so that its sessions are found again."""
    return home.absolute() / HOMES / f"agent-{quote(name, safe='')}"


def _setup(
    section: ClaudeSection,
    key: str,
    own_home: Path | None,
    environment: dict[str, str],
    servers: Servers,
    folder: Path,
) -> Setup:
    return Setup(
        folder=(folder / (section.working_dir or ".")).absolute(),
        environment=environment,
        home=own_home,
        key=key,
        key_variable=section.key_env,
        cli_path=None if section.cli_path is None else (folder / section.cli_path).absolute(),
        model=section.model,
        fallback_model=section.fallback_model,
        permission_mode=section.permission_mode,
        allowed_tools=section.allowed_tools,
        disallowed_tools=section.disallowed_tools,
        mcp_servers=servers,
        effort=section.effort,
        max_turns=section.max_turns,
    )


def _environment(
    section: ClaudeSection, child: Mapping[str, str], key: str, own_home: Path | None, variables: Mapping[str, str]
) -> dict[str, str]:
    address = variables.get(ADDRESS) or None
    unguarded = section.permission_mode == "bypassPermissions" and os.geteuid() == 0
    if own_home is None:
        return with_subscription(child, home=variables.get("HOME"), address=address, unguarded=unguarded)
    return with_key(child, key=key, address=address, home=own_home, unguarded=unguarded)


def _key(name: str, section: ClaudeSection, variables: Mapping[str, str]) -> str:
    variable = section.key_env
    key = variables.get(variable, "")
    if not key:
        raise BadConfiguration(
            f"agent {name!r} needs an API key, and {variable} is not set",
            suggestions=(
                f"export {variable}=…",
                f"or, if Claude Code is logged in: subscription = true in [agents.{name}]",
            ),
        )
    if not key.isascii() or not key.isprintable():
        raise BadConfiguration(f"the API key in {variable} contains invalid characters", suggestions=("copy it again",))
    return key


def _servers(name: str, section: ClaudeSection, home: Path) -> Servers:
    try:
        declared = plain_json(section.mcp_servers, "it")
    except BadArgument as error:
        # What it says of the value is left out: it may show the value.
        raise BadConfiguration(
            f"agent {name!r}: mcp_servers has a value that is not JSON, such as a date or an infinite number",
            suggestions=("write it as a string, in quotes",),
        ) from error
    return Servers(file=home_of(home, name) / SERVERS, declared=declared)


def _check_reserve(name: str, section: ClaudeSection, most: Microdollars) -> None:
    if not most and not section.subscription:
        raise BadConfiguration(
            f"agent {name!r} cannot spend anything: budget_usd is 0",
            suggestions=(f"set budget_usd in [agents.{name}] to the maximum cost of one call",),
        )
