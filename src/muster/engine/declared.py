"""What a workload declares in its signature: the types of its spec and of its result."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadConfiguration
from muster.engine.values import PLAIN, ValueType, hinted, schema_of

SpecT = TypeVar("SpecT")
ResultT = TypeVar("ResultT")
MappingT = TypeVar("MappingT", bound=Mapping[str, object])  # a TypedDict, which type checkers see in no dict
JsonMapping = Mapping[str, object]
WorkloadFunction = Callable[[Any, SpecT], Awaitable[ResultT]]  # as written; it takes a Context first

Registered = Callable[[str], Callable[..., Any] | None]  # what is registered under a name now
_names: "WeakKeyDictionary[Callable[..., Any], tuple[str, Registered]]" = WeakKeyDictionary()  # of functions


@dataclass(frozen=True, slots=True)
class DeclaredWorkload:
    """What a workload is called, and what types its signature declares for its spec and its result."""

    name: str
    spec: ValueType = PLAIN
    result: ValueType = PLAIN

    @property
    def is_open(self) -> bool:
        """Return whether it declares nothing: the function takes and returns plain JSON."""
        return self.spec.is_open and self.result.is_open

    def written(self, spec: object) -> Any:
        """Return a spec as it is stored; raises BadArgument for one that is not of the declared type."""
        way = f"declare its type in the function: spec: {type(spec).__name__}"
        return self.spec.write(spec, f"the spec of workload {self.name!r}", way)

    def check(self, spec: Json) -> None:
        """Raise BadArgument, with all that is wrong, for a stored spec that is not of the declared type."""
        self.spec.check(spec, f"the spec of workload {self.name!r}")

    def schema(self) -> dict[str, Json]:
        """Return the JSON Schema of its spec, with that of its result under `returns`."""
        returns = {} if self.result.is_open else {"returns": schema_of(self.result.kind)}
        return {**schema_of(Any if self.spec.is_open else self.spec.kind), "title": self.name, **returns}


def declared(workload: "str | WorkloadFunction[Any, Any]") -> DeclaredWorkload:
    """Return what a workload declares; one that is only named says nothing here.

    Raises BadArgument for a function under whose name another one would run.
    """
    if isinstance(workload, str):
        return DeclaredWorkload(workload)
    noted = _names.get(workload) if inspect.isfunction(workload) else None
    if noted is None:
        raise BadArgument(
            f"{getattr(workload, '__name__', repr(workload))} is not a workload",
            suggestions=('put @muster.workload("NAME") before the function', "give the name of a workload"),
        )
    name, registered = noted
    runs = registered(name)
    if runs is None or not _is_same(workload, runs):
        place = "" if runs is None else f", the one of {code_place(runs)}"
        raise BadArgument(
            f"another function is registered as workload {name!r} by now{place}",
            suggestions=("give each workload a name of its own",),
        )
    return declared_as(name, workload)


def note_name(function: Callable[..., Any], name: str, registered: Registered) -> None:
    """Note under which name a function was registered, and where to look what is registered there."""
    _names[function] = name, registered


def code_place(function: Callable[..., Any]) -> str:
    """Return where a function is defined, for people."""
    code = _code(function)
    return f"a {type(function).__name__}" if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _code(function: Callable[..., Any]) -> CodeType | None:
    return function.__code__ if inspect.isfunction(function) else None


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether two functions do the same: they are one, or that of a module which was imported twice."""
    code, others = _code(one), _code(other)
    if one is other or code is None or others is None:
        return one is other
    return (code, code.co_filename, code.co_freevars) == (others, others.co_filename, ())


def declared_as(name: str, function: Callable[..., Any]) -> DeclaredWorkload:
    """Return what a function declares as the workload of a name; raises BadConfiguration for types without meaning."""
    _, spec, *_ = (*inspect.signature(function).parameters, "")
    try:
        declared = DeclaredWorkload(name, hinted(function, spec), hinted(function, "return"))
    except (NameError, TypeError) as error:
        raise BadConfiguration(
            f"the types that workload {name!r} declares cannot be read: {error}",
            suggestions=("import them where the function is defined, not under `if TYPE_CHECKING`",),
        ) from error
    try:
        declared.spec.require_storable("its spec")
        declared.result.require_storable("its result")
    except BadArgument as error:
        raise BadConfiguration(f"the types that workload {name!r} declares cannot be used: {error.message}") from error
    return declared
