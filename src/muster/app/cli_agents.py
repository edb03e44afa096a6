"""CLI agents, made from their sections of muster.toml."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from muster.agents.cli.agent import CliAgent
from muster.agents.cli.dialect import Dialect, Output, Places
from muster.agents.cli.verdict import Check
from muster.agents.paths import JsonPath, compile_path
from muster.agents.processes import proc
from muster.agents.processes.household import Household
from muster.agents.processes.order import Order, environment_of
from muster.domain.agent import Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Lane, Microdollars
from muster.settings.sections import CliSection


def make_cli(
    name: str,
    section: CliSection,
    *,
    profile: Profile,
    household: Household,
    variables: Mapping[str, str],
    folder: Path,
    unpriced_ok: bool,
    check: Check | None = None,
) -> CliAgent:
    """Make an agent of a CLI; paths are relative to the folder of muster.toml."""
    most = section.reserve()
    return CliAgent(
        profile=profile,
        household=household,
        order=Order(
            agent=name,
            command=(),
            folder=folder / section.working_dir if section.working_dir else folder,
            environment=_environment(name, section, variables),
        ),
        dialect=_dialect(name, section),
        most=None if most is None else Microdollars(most),
        unpriced_ok=unpriced_ok,
        lane=Lane.IMPUTED if section.subscription else Lane.BILLED,
        check=check,
    )


def _dialect(name: str, section: CliSection) -> Dialect:
    return Dialect(
        command=section.command,
        resume=section.resume,
        model=section.model,
        output=Output(section.output),
        places=Places(**dict(_places(name, section))),
    )


def _places(name: str, section: CliSection) -> Iterator[tuple[str, JsonPath]]:
    for place in fields(Places):
        text = getattr(section, place.name)
        if text is not None:
            yield place.name, compile_path(text, f"agents.{name}: {place.name}")


def _environment(name: str, section: CliSection, variables: Mapping[str, str]) -> dict[str, str]:
    for variable in section.pass_env:
        if variable not in variables:
            raise BadConfiguration(
                f"agent {name!r} is passed {variable}, which is not set",
                suggestions=(f"export {variable}=…", f"or take it out of pass_env in [agents.{name}]"),
            )
    environment = environment_of(variables, named=section.pass_env, own=section.env)
    if proc.TOKEN_VARIABLE in variables:  # we are a process of another house ourselves: what we start is its too
        environment[proc.TOKEN_VARIABLE] = variables[proc.TOKEN_VARIABLE]
    return environment
