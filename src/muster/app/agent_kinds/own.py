"""The agents that are the user's own: programs, services, functions and CLI agents, made from their sections."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muster.agents.base import Agent
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.base import UnreadyAgent, profile_of
from muster.domain.agent import Command
from muster.domain.errors import BadConfiguration
from muster.settings import Settings
from muster.settings.sections import (
    ClaudeSection,
    CliSection,
    HttpSection,
    ProgramSection,
    PythonSection,
)

if TYPE_CHECKING:
    from muster.agents.http.client import Http


class OwnAgents:
    """Makes agents that answer on this machine or in the user's own service."""

    def __init__(
        self, settings: Settings, processes: ProcessRegistry, http: "Callable[[str], Http]", *, unpriced_ok: bool
    ) -> None:
        self._settings, self._household, self._http = settings, processes, http
        self._unpriced_ok = unpriced_ok

    def command(self, command: Command) -> Agent:
        """Make an agent of a command; its folder is relative to that of muster.toml."""
        from muster.app.agent_kinds.programs import make_command

        return make_command(
            command,
            processes=self._household,
            variables=self._settings.variables,
            folder=self._settings.folder,
        )

    def make(
        self, name: str, section: ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection
    ) -> Agent:
        """Make one agent."""
        profile = profile_of(name, section)
        folder, variables = self._settings.folder, self._settings.variables
        process: dict[str, Any] = {"processes": self._household, "variables": variables, "folder": folder}
        match section:
            case ProgramSection():
                from muster.app.agent_kinds.programs import make_program

                return make_program(name, section, profile=profile, **process)
            case HttpSection():
                from muster.app.agent_kinds.services import make_service

                try:
                    http = self._http(section.url)
                except BadConfiguration as error:
                    return UnreadyAgent(profile, error)
                return make_service(name, section, profile=profile, http=http, variables=variables)
            case PythonSection():
                from muster.app.agent_kinds.services import make_function

                return make_function(name, section, profile=profile, folder=folder)
            case ClaudeSection():
                from muster.app.agent_kinds.claude import make_claude

                return make_claude(name, section, profile=profile, home=self._settings.home, **process)
            case CliSection():
                from muster.app.agent_kinds.cli_agents import make_cli

                return make_cli(name, section, profile=profile, unpriced_ok=self._unpriced_ok, **process)
