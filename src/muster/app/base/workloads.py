"""The workloads of a project: those registered in this process, ours, and the modules that muster.toml names.

The modules of the user are imported when one of their workloads is needed, so that no other command depends on them.
"""

import contextlib
import importlib
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from muster.app.kinds import BUILT_IN
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.engine.declared import DeclaredWorkload
from muster.engine.workload import REGISTRY, Workload, Workloads
from muster.settings import CONFIG_FILE, Settings
from muster.settings.file import setting_place

GUARD = 'put what it starts under if __name__ == "__main__":'
# What asyncio says of a program that starts its event loop inside of ours.
LOOP_ERRORS = ("cannot be called from a running event loop", "event loop is already running", "another loop is running")


class ProjectWorkloads:
    """Finds workloads by name; imports the modules of the user at most once."""

    def __init__(self, registry: Workloads, imports: Sequence[str], folder: Path) -> None:
        self._registry, self._imports, self._folder = registry, tuple(imports), folder
        self._loaded = not imports
        for kind in BUILT_IN:
            registry.promise(kind.workload, kind.module)

    def find(self, name: str) -> Workload:
        """Return the function behind a name; raises BadConfiguration for a name or a module that does not do."""
        if name not in self._registry:
            self.load()
        return self._registry.find(name)

    def is_own(self, name: str) -> bool:
        """Return whether it is a user's own, and not one of Muster."""
        return self._registry.is_own(name)

    def declared(self, name: str) -> DeclaredWorkload:
        """Return what types a workload declares; raises BadConfiguration like `find`."""
        self.find(name)
        return self._registry.declared(name)

    def check(self, name: str, spec: Json) -> None:
        """Raise BadArgument for a spec that a workload refuses, as far as it is known without the user's modules."""
        self._registry.check(name, spec)

    def __contains__(self, name: str) -> bool:
        if name not in self._registry:
            self.load()
        return name in self._registry

    @property
    def own(self) -> Sequence[str]:
        """Return the names of the user's workloads that are known by now."""
        return [name for name in self._registry.names() if name not in {kind.workload for kind in BUILT_IN}]

    def load(self) -> None:
        """Import every module of the user, or raise BadConfiguration for the first that cannot be imported."""
        if self._loaded:
            return
        for module in self._imports:
            self.import_one(module)
        self._loaded = True

    def import_one(self, module: str) -> None:
        """Import one module; what a module registered before it failed is forgotten again."""
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))
        forget = self._registry.checkpoint()
        try:
            with contextlib.redirect_stdout(sys.stderr):  # standard output holds the answer of the command
                importlib.import_module(module)
        except (Exception, SystemExit) as error:
            forget()
            what, remedy = _cause(error, self._folder)
            _clear(error)
            place = setting_place(self._folder / CONFIG_FILE, "workloads", "import")
            raise BadConfiguration(f"{place}: {module} cannot be imported: {what}", suggestions=(remedy,)) from None


def project_workloads(settings: Settings) -> ProjectWorkloads:
    """Return the workloads that the settings name, on top of what this process has registered."""
    return ProjectWorkloads(REGISTRY, settings.imports, settings.folder)


def _cause(error: BaseException, folder: Path) -> tuple[str, str]:
    """Return what went wrong during an import, and what to do."""
    place = _place(error, folder)
    if isinstance(error, SystemExit):
        return f"it exits when it is imported{place}", GUARD
    if isinstance(error, RuntimeError) and any(words in str(error) for words in LOOP_ERRORS):
        return f"it starts an event loop when it is imported{place}, as by asyncio.run", GUARD
    why = str(error) if isinstance(error, ModuleNotFoundError) else repr(error)
    return f"{why}{place}", f"modules are searched in {folder} and on sys.path"


def _place(error: BaseException, folder: Path) -> str:
    """Return the line of the user's file at which it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder) and frame.name == "<module>"]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _clear(error: BaseException) -> None:
    """Release what the import left half-done: a coroutine that was never awaited warns when it is collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        traceback.clear_frames(error.__traceback__)
