"""The agents that are the user's own: programs, services, functions and CLI agents, made from their sections."""

import importlib
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
        return load("programs:make_command")(
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
                return load("programs:make_program")(name, section, profile=profile, **process)
            case HttpSection():
                try:
                    http = self._http(section.url)
                except BadConfiguration as error:
                    return UnreadyAgent(profile, error)
                service = load("services:make_service")
                return service(name, section, profile=profile, http=http, variables=variables)
            case PythonSection():
                return load("services:make_function")(name, section, profile=profile, folder=folder)
            case ClaudeSection():
                return load("claude:make_claude")(name, section, profile=profile, home=self._settings.home, **process)
            case CliSection():
                cli = load("cli_agents:make_cli")
                return cli(name, section, profile=profile, unpriced_ok=self._unpriced_ok, **process)


def load(place: str) -> Callable[..., Agent]:
    """Return MODULE:FUNCTION of this folder; each module is loaded when an agent of its kind is first made."""
    module, _, name = place.partition(":")
    found: Callable[..., Agent] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
