"""Programs and CLI agents, made from their sections of muster.toml."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from muster.agents.base import Agent
from muster.agents.cli.agent import CliAgent
from muster.agents.cli.dialect import AnswerPaths, Dialect, Output
from muster.agents.cli.questions import QuestionPatterns
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program.agent import ProgramAgent
from muster.app.agent_kinds.base import UnreadyAgent, environment_for
from muster.domain.agent import COMMAND_LIMITER, Command, Pace, Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Lane, Microdollars
from muster.settings.sections import CliSection, ProgramSection
from muster.text.json_paths import JsonPath, compile_path

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
    profile = Profile(name=command.name, limiter=COMMAND_LIMITER, pace=Pace(concurrency=COMMANDS, gets_ahead=False))
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


def make_cli(
    name: str,
    section: CliSection,
    *,
    profile: Profile,
    processes: ProcessRegistry,
    variables: Mapping[str, str],
    folder: Path,
    unpriced_ok: bool,
) -> Agent:
    """Make an agent of a CLI; paths are relative to the folder of muster.toml."""
    most, dialect = section.reserve(), _dialect(name, section)
    dialect.check(name, budget=bool(most))
    try:
        environment = environment_for(name, section, variables)
    except BadConfiguration as error:
        return UnreadyAgent(profile, error)
    return CliAgent(
        profile=profile,
        processes=processes,
        order=ProcessCommand(
            agent=name,
            command=(),
            folder=folder / (section.working_dir or "."),
            environment=environment,
        ),
        dialect=dialect,
        most=None if most is None else Microdollars(most),
        unpriced_ok=unpriced_ok,
        lane=Lane.IMPUTED if section.subscription else Lane.BILLED,
    )


def _dialect(name: str, section: CliSection) -> Dialect:
    return Dialect(
        command=section.command,
        resume=section.resume,
        allow=section.allow,
        mcp=section.mcp,
        model=section.model,
        output=Output(section.output),
        places=AnswerPaths(**dict(_places(name, section))),
        questions=QuestionPatterns(section.permission_patterns),
        message=section.message,
    )


def _places(name: str, section: CliSection) -> Iterator[tuple[str, JsonPath]]:
    for place in fields(AnswerPaths):
        text = getattr(section, place.name)
        if text is not None:
            yield place.name, compile_path(text, f"agents.{name}: {place.name}")
