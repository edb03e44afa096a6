"""The agents that are the user's own: programs, services, functions and CLI agents, made from their sections."""

from typing import Any

from muster.agents.base import Agent
from muster.agents.http import Http
from muster.agents.processes.household import Household
from muster.app.claude import make_claude
from muster.app.cli_agents import make_cli
from muster.app.profiles import profile_of
from muster.app.programs import make_command, make_program
from muster.app.services import make_function, make_service
from muster.domain.agent import Command
from muster.settings import Settings
from muster.settings.sections import (
    ClaudeSection,
    CliSection,
    HttpSection,
    ProgramSection,
    PythonSection,
)


class OwnAgents:
    """Makes agents that answer on this machine or in the user's own service."""

    def __init__(self, settings: Settings, household: Household, http: Http, *, unpriced_ok: bool) -> None:
        self._settings, self._household, self._http = settings, household, http
        self._unpriced_ok = unpriced_ok

    def command(self, command: Command) -> Agent:
        """Make an agent of a command; its folder is relative to that of muster.toml."""
        return make_command(
            command,
            household=self._household,
            variables=self._settings.variables,
            folder=self._settings.folder,
        )

    def make(
        self, name: str, section: ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection
    ) -> Agent:
        """Make one agent."""
        profile = profile_of(name, section)
        folder, variables = self._settings.folder, self._settings.variables
        process: dict[str, Any] = {"household": self._household, "variables": variables, "folder": folder}
        match section:
            case ProgramSection():
                return make_program(name, section, profile=profile, **process)
            case HttpSection():
                return make_service(name, section, profile=profile, http=self._http, variables=variables)
            case PythonSection():
                return make_function(name, section, profile=profile, folder=folder)
            case ClaudeSection():
                return make_claude(name, section, profile=profile, home=self._settings.home, **process)
            case CliSection():
                return make_cli(name, section, profile=profile, unpriced_ok=self._unpriced_ok, **process)
