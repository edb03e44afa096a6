"""Programs as agents, made from their sections of muster.toml."""

from collections.abc import Mapping
from pathlib import Path

from muster.agents.base import Agent
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program.agent import ProgramAgent
from muster.app.agent_kinds.base import UnreadyAgent, environment_for
from muster.domain.agent import Command, Pace, Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Microdollars
from muster.settings.sections import ProgramSection

COMMANDS = 8  # of checks that are at work at a time


def make_program(
    name: str,
    section: ProgramSection,
    *,
    profile: Profile,
    processes: ProcessRegistry,
    variables: Mapping[str, str],
    folder: Path,
) -> Agent:
    """Make an agent of a program; paths are relative to the folder of muster.toml."""
    try:
        _require_command(name, section)
        environment = environment_for(name, section, variables)
    except BadConfiguration as error:
        return UnreadyAgent(profile, error)
    order = ProcessCommand(
        agent=name,
        command=section.command,
        folder=folder / (section.working_dir or "."),
        environment=environment,
    )
    most = Microdollars(section.reserve() or 0)
    return ProgramAgent(profile=profile, order=order, mode=section.mode, processes=processes, most=most)


def make_command(command: Command, *, processes: ProcessRegistry, variables: Mapping[str, str], folder: Path) -> Agent:
    """Make an agent of a command that no section declares: one of a check."""
    section = ProgramSection(kind="program", command=command.argv, env=dict(command.environment))
    profile = Profile(name=command.name, limiter="command", pace=Pace(concurrency=COMMANDS, gets_ahead=False))
    order = ProcessCommand(
        agent=command.name,
        command=command.argv,
        folder=folder / command.folder,
        environment=environment_for(command.name, section, variables),
    )
    return ProgramAgent(
        profile=profile,
        order=order,
        mode="plain",
        processes=processes,
        exits=command.exits,
        quotes=command.quotes,
    )


def _require_command(name: str, section: ProgramSection) -> None:
    if not section.command:
        raise BadConfiguration(
            f"agent {name!r}: its command is empty",
            suggestions=(f'add command = ["python3", "critic.py"] to [agents.{name}]',),
        )
