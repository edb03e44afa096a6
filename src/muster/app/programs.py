"""Programs as agents, made from their sections of muster.toml."""

from collections.abc import Mapping
from pathlib import Path

from muster.agents.processes import proc
from muster.agents.processes.household import Household
from muster.agents.processes.order import Order, environment_of
from muster.agents.program.agent import ProgramAgent
from muster.domain.agent import Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Microdollars
from muster.settings.sections import ProgramSection


def make_program(
    name: str,
    section: ProgramSection,
    *,
    profile: Profile,
    household: Household,
    variables: Mapping[str, str],
    folder: Path,
) -> ProgramAgent:
    """Make an agent of a program; paths are relative to the folder of muster.toml."""
    order = Order(
        agent=name,
        command=section.command,
        folder=folder / section.working_dir if section.working_dir else folder,
        environment=_environment(name, section, variables),
    )
    most = Microdollars(section.reserve() or 0)
    return ProgramAgent(profile=profile, order=order, mode=section.mode, household=household, most=most)


def _environment(name: str, section: ProgramSection, variables: Mapping[str, str]) -> dict[str, str]:
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
