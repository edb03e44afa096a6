"""The registry of workloads: patterns of work, found by name in any process that resumes a run."""

import importlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeVar

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadConfiguration, MusterError
from muster.engine.declared import DeclaredWorkload, code_place, declared_as, note_name

if TYPE_CHECKING:
    from muster.engine.context import Context

Workload = Callable[["Context", Any], Awaitable[Any]]
SpecCheck = Callable[[Any], object]  # raises for a spec that the workload could not use
Preparation = Callable[["Context"], Awaitable[None]]  # does steps of a workload in advance
VERSION_KEY = "workload/version"  # of the step in which a run remembers it
W = TypeVar("W", bound="Callable[[Context, Never], Awaitable[object]]")


def typed(declaration: DeclaredWorkload, workload: Workload) -> Workload:
    """Return a workload as the engine drives it, which takes and returns JSON, whatever types it declares."""
    if declaration.is_open:
        return workload

    async def run(ctx: "Context", spec: Json) -> Any:
        name = declaration.name
        found = await workload(ctx, declaration.spec.read(spec, f"the spec of workload {name!r}"))
        return declaration.result.write(found, f"the result of workload {name!r}")

    return run


def prepared(workload: Workload, before: Preparation) -> Workload:
    """Return a workload that finds some of its steps done.

    They are lost with the process: a driver that takes the run over later does them itself.
    """

    async def run(ctx: "Context", spec: Any) -> Any:
        await before(ctx)
        return await workload(ctx, spec)

    return run


def versioned(name: str, version: int, oldest: int, workload: Workload) -> Workload:
    """Return a workload whose runs know with which version of the code they began: `ctx.version`."""

    async def run(ctx: "Context", spec: Any) -> Any:
        async def began() -> int:
            # What did something before this step began without a version; what did nothing begins now.
            return 1 if ctx.is_resumed and await ctx._memory.any() else version

        ctx.version = await ctx.step(VERSION_KEY, began)
        if not oldest <= ctx.version <= version:
            known = f"version {version}" if oldest == version else f"versions {oldest} to {version}"
            raise BadConfiguration(
                f"run {ctx.run} began with version {ctx.version} of workload {name!r}, and this code has {known}",
                suggestions=("resume it where that code is", "or start a new run"),
            )
        return await workload(ctx, spec)

    return run


def noting(workload: Workload, note: Callable[[Exception], None]) -> Workload:
    """Return a workload that tells what it raises; an observer in this process learns more than is stored."""

    async def run(ctx: "Context", spec: Any) -> Any:
        try:
            return await workload(ctx, spec)
        except Exception as error:
            note(error)
            raise

    return run


class WorkloadSource(Protocol):
    """Where an engine finds the functions of the runs it drives."""

    def find(self, name: str) -> Workload:
        """Return the function, or raise BadConfiguration."""

    def is_own(self, name: str) -> bool:
        """Return whether it is a user's own, and not one of Muster."""

    def __contains__(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class RegisteredWorkload:
    """A function with what was said when it was registered."""

    function: Workload
    check: SpecCheck | None
    version: int | None  # the current one
    oldest: int  # version whose runs go on


class Workloads:
    """Names and the functions behind them; of several registered under one name the last counts."""

    def __init__(self) -> None:
        self._found: dict[str, RegisteredWorkload] = {}
        self._promised: dict[str, str] = {}  # modules that are imported when somebody asks for the name

    def workload(
        self, name: str, *, check: SpecCheck | None = None, version: int | None = None, oldest: int = 1
    ) -> Callable[[W], W]:
        """Register an async function under a name; `check` raises for a spec that is refused before a run is stored.

        With a `version`, which goes up when the code changes under runs that have not ended, `ctx.version` is that with
        which a run began; runs of versions before the `oldest` are refused.
        """
        _require_name(name)
        _require_versions(version, oldest)

        def register(function: W) -> W:
            _require_signature(name, function)
            _require_own_name(name, function, self._promised.get(name))
            self._found[name] = RegisteredWorkload(function, check, version, oldest)
            note_name(function, name, self._function)
            return function

        return register

    def _function(self, name: str) -> Workload | None:
        return self._found[name].function if name in self._found else None

    def promise(self, name: str, module: str) -> None:
        """Note which module registers a name, without importing it: most commands need no workload at all.

        Raises BadArgument when another one has registered it.
        """
        if name in self._found:
            _require_own_name(name, self._found[name].function, module)
        self._promised[name] = module

    def is_own(self, name: str) -> bool:
        """Return whether it is a user's own, which nothing promised."""
        return name not in self._promised

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that forgets what is registered from now on."""
        before = dict(self._found)

        def forget() -> None:
            self._found = before

        return forget

    def names(self) -> list[str]:
        """Return every name that is known here."""
        return sorted({*self._found, *self._promised})

    def find(self, name: str) -> Workload:
        """Return the function, or say which ones there are."""
        _require_name(name)
        if name not in self._found and name in self._promised:
            importlib.import_module(self._promised[name])
        if name not in self._found:
            raise self._unknown(name)
        found = self._found[name]
        workload = typed(declared_as(name, found.function), found.function)
        return workload if found.version is None else versioned(name, found.version, found.oldest, workload)

    def declared(self, name: str) -> DeclaredWorkload:
        """Return what a workload declares; raises BadConfiguration for one that is not known here."""
        self.find(name)
        return declared_as(name, self._found[name].function)

    def check(self, name: str, spec: Json) -> None:
        """Raise BadArgument for a spec that a workload refuses; one that is not known here is left to the workers."""
        if name not in self:
            return
        self.declared(name).check(spec)
        found = self._found[name]
        try:
            if found.check is not None:
                found.check(spec)
        except MusterError:
            raise
        except Exception as error:
            raise BadArgument(f"not a valid spec of {name!r}: {error!r}") from error

    def _unknown(self, name: str) -> BadConfiguration:
        near = get_close_matches(name, self.names(), n=1)
        return BadConfiguration(
            f"unknown workload {name!r}" + (f"; did you mean {near[0]}?" if near else ""),
            suggestions=(
                "add the module that defines it to muster.toml, under [workloads] import",
                f"known here: {', '.join(self.names()) or 'none'}",
            ),
        )

    def __contains__(self, name: str) -> bool:
        return name in self._found or name in self._promised


def _require_name(name: object) -> None:
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise BadArgument(f"{name!r} cannot be the name of a workload", suggestions=("use a printable word",))


def _require_versions(version: object, oldest: object) -> None:
    """Raise BadArgument for versions that are not whole numbers from 1 on, in their order."""
    for name, number in (("version", version), ("oldest", oldest)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise BadArgument(f"must be a whole number, such as 2, not {number!r}", argument=name)
    if isinstance(version, int) and isinstance(oldest, int) and not 1 <= oldest <= version:
        raise BadArgument(f"must be {max(oldest, 1)} or more, not {version!r}", argument="version")


def _require_own_name(name: str, function: Callable[..., Any], promised: str | None) -> None:
    """Raise BadArgument for a function of a user under the name of a workload that is built in."""
    if promised not in (None, getattr(function, "__module__", None)):
        raise BadArgument(
            f"{name!r} is the name of a built-in workload, and {code_place(function)} defines another one",
            suggestions=("give it another name",),
        )


def _require_signature(name: str, function: Callable[..., Any]) -> None:
    """Raise BadArgument, with all that is wrong, for a function that cannot be driven as a workload."""
    wrong = [] if inspect.iscoroutinefunction(function) else ["be an async function"]
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        wrong.append("take two arguments")
    if wrong:
        own = getattr(function, "__name__", "function")
        raise BadArgument(
            f"workload {name!r} must {' and '.join(wrong)}", suggestions=(f"write async def {own}(ctx, spec)",)
        )


REGISTRY = Workloads()
workload = REGISTRY.workload
