"""The files of a project: suites, verification agents, schemas, the git hook, evidence. No store is opened or made."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from muster.app.base.workloads import project_workloads
from muster.app.project.editor_schemas import chain_schema, council_schema, suite_schema, verify_schema
from muster.app.project.kinds import SCHEMA_NAMES
from muster.app.project.validation import Linted, Validated, lint, starter, validate
from muster.app.runs.reports import AnyReport, report_of_file
from muster.app.suites.evidence import Evidence
from muster.app.verify.secrets import Allowed, Installed, allow_secret, install_hook
from muster.domain.errors import BadArgument
from muster.settings import Settings, load_settings
from muster.settings.file import toml_schema
from muster.text.words import choice_error

SCHEMAS = dict(zip(SCHEMA_NAMES, (suite_schema, verify_schema, chain_schema, council_schema, toml_schema), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedFolder:
    """A folder to begin with, and its files."""

    folder: Path
    kind: str
    files: tuple[Path, ...]


class Project:
    """What can be done with the files of a project, whether it has a store or not. `Muster.project`."""

    def __init__(self, home: str | Path | None = None) -> None:
        self._home = None if home is None else Path(home)

    @cached_property
    def settings(self) -> Settings:
        """Return the settings of the project; raises BadConfiguration when they are not valid."""
        return load_settings(self._home)

    @cached_property
    def evidence(self) -> Evidence:
        """Return what can be done with signed archives."""
        return Evidence(self.settings.home)

    def validate(self, paths: Sequence[str | Path]) -> Validated:
        """Check suites, verification agents, chains and folders with them; raises BadArgument for none at all."""
        _require_some(paths)
        return validate([Path(path) for path in paths])

    def lint(self, paths: Sequence[str | Path]) -> Linted:
        """Find weak spots of suites; raises BadArgument for none at all."""
        _require_some(paths)
        return lint([Path(path) for path in paths])

    def schema(self, what: str) -> Mapping[str, Any]:
        """Return the JSON Schema of a file: `suite`, `verify`, `chain`, `council`, or `toml` for muster.toml.

        Also that of the spec of a workload of the project, by its name.
        """
        if what in SCHEMAS:
            return SCHEMAS[what]()
        workloads = project_workloads(self.settings)
        if what not in workloads:
            raise BadArgument(choice_error((*SCHEMAS, *workloads.own), what), argument="the kind")
        return workloads.declared(what).schema()

    def create(self, name: str, kind: str = "suite", *, below: str | Path = "") -> CreatedFolder:
        """Make a folder with a small suite, a chain, a council, or the shipped verification agents (`verify`)."""
        folder = Path(below) / name
        return CreatedFolder(folder=folder, kind=kind, files=_write(folder, starter(kind, name)))

    async def install_hook(self, folder: str | Path = ".", *, force: bool = False) -> Installed:
        """Install a git hook that verifies what is staged before each commit; `force` replaces another one."""
        home = () if self._home is None else ("--home", str(self._home.absolute()))
        command = (sys.executable, "-P", "-m", "muster", "verify", "--staged", "--live", "--allow-empty", *home)
        return await install_hook(Path(folder), command, force=force)

    async def allow_secret(
        self, place: str, *, folder: str | Path = ".", agents_file: str | Path | None = None
    ) -> Allowed:
        """Add an exception for the secrets at FILE:LINE to verify.yaml."""
        named = None if agents_file is None else Path(agents_file)
        return await allow_secret(self.settings, Path(folder), place, named)

    @asynccontextmanager
    async def report_of_file(self, path: str | Path) -> AsyncIterator[AnyReport]:
        """Sum up the run of an exported file; the store of the project is not opened."""
        async with report_of_file(Path(path)) as found:
            yield found


def _write(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        remedy = "choose another name"
        raise BadArgument(f"{folder} already exists; nothing was written", suggestions=(remedy,)) from None
    except OSError as error:
        remedy = "go to a folder in which you can write"
        raise BadArgument(f"{folder} cannot be created: {error.strerror}", suggestions=(remedy,)) from error
    return tuple(folder / name for name in files)


def _require_some(paths: Sequence[str | Path]) -> None:
    if isinstance(paths, str) or not paths:
        raise BadArgument(f"paths must be a list of one or more paths, not {paths!r}")
