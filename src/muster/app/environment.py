"""What the processes of agents get of our environment."""

from collections.abc import Mapping

from muster.agents.processes import proc
from muster.agents.processes.order import environment_of
from muster.domain.errors import BadConfiguration
from muster.settings.sections import ClaudeSection, CliSection, ProgramSection


def environment_for(
    name: str, section: ProgramSection | CliSection | ClaudeSection, variables: Mapping[str, str]
) -> dict[str, str]:
    """Build the environment of an agent's processes; raises BadConfiguration when one that it is passed is not set."""
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
