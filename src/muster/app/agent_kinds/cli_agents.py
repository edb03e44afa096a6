"""CLI agents, made from their sections of muster.toml."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from muster.agents.base import Agent
from muster.agents.cli.agent import CliAgent
from muster.agents.cli.dialect import AnswerPaths, Dialect, Output
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.base import UnreadyAgent, environment_for
from muster.domain.agent import Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Lane, Microdollars
from muster.settings.sections import CliSection
from muster.text.json_paths import JsonPath, compile_path


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
        model=section.model,
        output=Output(section.output),
        places=AnswerPaths(**dict(_places(name, section))),
    )


def _places(name: str, section: CliSection) -> Iterator[tuple[str, JsonPath]]:
    for place in fields(AnswerPaths):
        text = getattr(section, place.name)
        if text is not None:
            yield place.name, compile_path(text, f"agents.{name}: {place.name}")
