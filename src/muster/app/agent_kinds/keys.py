"""The keys of models: in a variable of the environment, or printed by a program of the user's."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from muster.agents.processes.process import environment_of
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.batch import BatchEndpoint
from muster.domain.errors import BadConfiguration
from muster.domain.provider import PROVIDERS, Provider
from muster.settings import Settings
from muster.settings.sections import ModelSection

if TYPE_CHECKING:
    from muster.agents.http.client import BatchHttp
    from muster.agents.printed_keys.key_command import KeyCommand, PrintedKey

LIFETIME = 1800.0  # seconds, where a section says nothing: providers' tokens live an hour
_PASSED = ("HOME",)  # beside PATH and LANG: programs that print keys find their own login there


class Keys:
    """Finds the key of a model, or the client that sends what a program prints."""

    def __init__(
        self,
        settings: Settings,
        processes: ProcessRegistry,
        http: "Callable[[str], BatchHttp]",
        *,
        hide: Callable[[str], None],
        keyless: bool,
    ) -> None:
        self._settings, self._processes, self._http = settings, processes, http
        self._hide, self._keyless = hide, keyless
        self._printed: dict[tuple[str, ...], PrintedKey] = {}

    def of(self, entry: ModelEntry) -> str:
        """Return the key; a server with an address of the user's own and no `key_env` wants none."""
        name, variable = entry.profile.name, entry.variable
        if "{" in entry.base_url and not self._keyless:
            entry.known.address(self._settings.variable)  # raises what is not known of it
        for value in entry.section.sent.values() if entry.section and not self._keyless else ():
            if value.startswith("$"):
                self._require(name, value[1:])
        for passed in entry.section.key_pass_env if entry.section and not self._keyless else ():
            self._require(name, passed)
        if variable is None:
            return ""
        key = self._settings.variable(variable)
        if key is None and self._keyless:
            return ""
        if key is None:
            raise BadConfiguration(
                f"{name} needs an API key, and {variable} is not set",
                suggestions=(f"export {variable}=…", *_ways(entry.known)),
            )
        if not key.isascii() or not key.isprintable():
            raise BadConfiguration(
                f"the API key in {variable} contains invalid characters", suggestions=("copy it again",)
            )
        return key

    def client(self, entry: ModelEntry) -> "BatchHttp":
        """Return the client for a model, which adds the key if a program prints it."""
        http = self._http(entry.base_url)
        if entry.section is None or not entry.section.key_command:
            return http
        return self._keyed(http, entry.section)

    def account(self, entry: ModelEntry) -> str | None:
        """Return what the account of a model is known by where a program prints its key; None elsewhere."""
        if entry.section is None or not entry.section.key_command:
            return None
        return self._command(entry.section).account(entry.base_url)

    def reopened(self, endpoint: BatchEndpoint) -> "BatchHttp | None":
        """Return the client for the account of a batch, where the key_command of a section is that account's."""
        sections = self._sections() if not endpoint.variable else ()
        for section in sections:
            if self._command(section).account(endpoint.base_url) == endpoint.account:
                return self._keyed(self._http(endpoint.base_url), section)
        return None

    async def close(self) -> None:
        """End the programs that still run."""
        for printed in self._printed.values():
            await printed.close()

    def _keyed(self, http: "BatchHttp", section: ModelSection) -> "BatchHttp":
        printed = self._printed.get(section.key_command)
        if printed is None:
            printed = importlib.import_module("muster.agents.printed_keys.key_command").PrintedKey(
                self._command(section), self._processes, hide=self._hide
            )
            self._printed[section.key_command] = printed
        client: BatchHttp = importlib.import_module("muster.agents.printed_keys.keyed_http").KeyedHttp(
            http, printed, PROVIDERS[section.kind].key_style.headers
        )
        return client

    def _command(self, section: ModelSection) -> "KeyCommand":
        command: KeyCommand = importlib.import_module("muster.agents.printed_keys.key_command").KeyCommand(
            command=section.key_command,
            lifetime=section.key_lifetime_secs or LIFETIME,
            environment=self._environment(section),
            folder=self._settings.folder,
        )
        return command

    def _environment(self, section: ModelSection) -> Mapping[str, str]:
        return environment_of(self._settings.variables, named=(*_PASSED, *section.key_pass_env))

    def _sections(self) -> Iterator[ModelSection]:
        sections = self._settings.agents.values()
        return (one for one in sections if isinstance(one, ModelSection) and one.key_command)

    def _require(self, name: str, variable: str) -> None:
        if self._settings.variable(variable) is None:
            way = f"export {variable}=…"
            raise BadConfiguration(f"{name} needs {variable}, which is not set", suggestions=(way,))


def _ways(provider: Provider) -> Iterator[str]:
    """Yield how else a key comes about, where the keys of a provider do not last."""
    if provider.token_command:
        words = ", ".join(f'"{word}"' for word in provider.token_command)
        yield f"or have a program print one, in muster.toml: key_command = [{words}]"
