"""The root of all errors, and what keeps a request from being done: something must be changed first, or is taken."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from muster.domain.flaw import FieldFlaw, FlawCode

T = TypeVar("T")
MAX_TOLD = 20  # flaws that one sentence names


class Paid(StrEnum):
    """How far a failed exchange may have cost money."""

    NO = "no"  # the provider did not charge: it refused, or it never saw the request
    YES = "yes"  # it failed, and said what that cost
    UNKNOWN = "unknown"  # it may have charged: the answer did not arrive whole


class MusterError(Exception):
    """Something went wrong; the class says what to do about it, the message says what and where."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 4
    retryable: bool = False  # whether the same may go well the next time: `retries` of a step try it again

    def __init__(self, message: str, *, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self._suggestions: tuple[str, ...] = ()
        if suggestions:
            self.suggestions = suggestions
        self.flaws: tuple[FieldFlaw, ...] = ()  # of fields that somebody gave

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What to do about it, which tracebacks show below the message."""
        return self._suggestions

    @suggestions.setter
    def suggestions(self, ways: tuple[str, ...]) -> None:
        others = [note for note in getattr(self, "__notes__", ()) if note not in self._suggestions]
        self._suggestions, self.__notes__ = ways, [*ways, *others]

    def record(self) -> dict[str, Any]:
        """Return the error as JSON, for the journal and the envelope."""
        ways = [str(way) for way in self.suggestions]
        fields = {"fields": [flaw.record() for flaw in self.flaws]} if self.flaws else {}
        return {"code": self.code, "message": self.message, "suggestions": ways, **fields}


class FixSpec(MusterError):
    """The person must change something first."""

    code = "fix"
    exit_code = 2


def _as_it_is(way: str) -> str:
    return way


class BadArgument(FixSpec):
    """A value given on the command line or to a function does not do.

    With `argument` the message is a predicate, and the sentence begins with the name of that argument: an edge puts the
    name that its users know in place of it. `of` is the error for several fields.
    """

    code = "bad_argument"

    def __init__(
        self,
        message: str,
        *,
        argument: str = "",
        suggestions: tuple[str, ...] = (),
        flaws: Sequence[FieldFlaw] = (),
    ) -> None:
        super().__init__(f"{argument} {message}" if argument else message, suggestions=suggestions)
        way = suggestions[0] if suggestions else ""
        own = (FieldFlaw(path=argument, message=message, suggestion=way),) if argument else ()
        self.flaws, self.about = (*own, *flaws), ""

    @classmethod
    def of(cls, flaws: Sequence[FieldFlaw], *, about: str = "", suggestions: tuple[str, ...] = ()) -> "BadArgument":
        """Return the error for everything that is wrong with some fields; `about` begins its sentence."""
        told = list(dict.fromkeys(map(str, flaws)))
        more = [f"and {len(told) - MAX_TOLD} more"] if len(told) > MAX_TOLD else []
        words = "; ".join((*told[:MAX_TOLD], *more))
        ways = tuple(dict.fromkeys((*suggestions, *(flaw.suggestion for flaw in flaws if flaw.suggestion))))
        error = BadArgument(f"{about}: {words}" if about else words, suggestions=ways, flaws=flaws)
        error.about = about
        return error

    def named(self, names: Mapping[str, str], advise: Callable[[str], str] = _as_it_is) -> "BadArgument":
        """Return the same error with the names that a door has for its fields, in its suggestions too."""
        ways = tuple(map(advise, self.suggestions))
        flaws = [replace(flaw.named(names), suggestion=advise(flaw.suggestion)) for flaw in self.flaws]
        if not flaws:
            return BadArgument(self.message, suggestions=ways)
        return BadArgument.of(flaws, about=self.about, suggestions=ways)


class ConflictingArguments(BadArgument):
    """Arguments that cannot be used together; `named` writes them as a door does."""

    def __init__(self, first: str, second: str, *others: str) -> None:
        self.arguments = (first, second, *others)
        super().__init__(
            f"{first} and {' or '.join((second, *others))} cannot be used together",
            suggestions=(f"leave out {' and '.join((second, *others))}",),
        )
        self.flaws = (self._flaw(first, (second, *others)), *(self._flaw(name, (first,)) for name in (second, *others)))

    def _flaw(self, name: str, others: Sequence[str]) -> FieldFlaw:
        message = f"cannot be used together with {' or '.join(others)}"
        return FieldFlaw(path=name, message=message, code=FlawCode.CONFLICT, suggestion=self.suggestions[0])

    def named(self, names: Mapping[str, str], advise: Callable[[str], str] = _as_it_is) -> "ConflictingArguments":
        """Return the same error with the names that a door has for its arguments."""
        first, second, *others = (names.get(name, name) for name in self.arguments)
        return ConflictingArguments(first, second, *others)


class BadFile(FixSpec):
    """A file does not parse or does not fit."""

    code = "bad_file"

    def __init__(
        self,
        path: str,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}", suggestions=suggestions)
        self.path, self.line, self.column = path, line, column


class BadConfiguration(FixSpec):
    """Keys, agents, prices or workloads are not set up for this; a field that says another one may help."""

    code = "configuration"
    exit_code = 3

    def __init__(self, message: str, *, suggestions: tuple[str, ...] = (), flaws: tuple[FieldFlaw, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.flaws = flaws


class ErrorCollector:
    """Runs one check after the other, and raises what all of them say as one error."""

    def __init__(self) -> None:
        self._errors: list[BadArgument | BadConfiguration] = []

    def check(self, function: Callable[..., T], *given: Any, **named: Any) -> T | None:
        """Return what a function returns; None when it raises BadArgument or BadConfiguration, which is kept."""
        try:
            return function(*given, **named)
        except (BadArgument, BadConfiguration) as error:
            self.keep(error)
            return None

    def finish(self, function: Callable[..., T], *given: Any, **named: Any) -> T:
        """Return what the last function returns; raises what it and those before it raise."""
        try:
            found = function(*given, **named)
        except (BadArgument, BadConfiguration) as error:
            self.keep(error)
        self.require()
        return found

    def __bool__(self) -> bool:
        """Return whether anything was kept."""
        return bool(self._errors)

    def keep(self, error: "BadArgument | BadConfiguration") -> None:
        """Keep an error, to be raised with others."""
        self._errors.append(error)

    def require(self) -> None:
        """Raise what was kept: an error alone as it is, several as one with the flaws of all of them."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            flaws = [flaw for error in self._errors for flaw in error.flaws or (_whole(error.message),)]
            ways = tuple(dict.fromkeys(way for error in self._errors for way in error.suggestions))
            raise BadArgument.of(list(_once(flaws)), suggestions=ways)


def _once(flaws: Iterable[FieldFlaw]) -> Iterator[FieldFlaw]:
    """Yield each flaw once; that a field is missing once too, whoever says why."""
    missing: set[str] = set()
    for flaw in dict.fromkeys(flaws):
        if flaw.code is not FlawCode.MISSING or flaw.path not in missing:
            yield flaw
        if flaw.code is FlawCode.MISSING:
            missing.add(flaw.path)


def _whole(message: str) -> FieldFlaw:
    return FieldFlaw(path="", message=message, by_itself=True)


class KeyReused(FixSpec):
    """One key was used for two different requests in one run."""

    code = "key_reused"


class ReplayMiss(FixSpec):
    """A replay asked for something that was never recorded."""

    code = "replay_miss"
    exit_code = 1


def did_you_mean(near: Sequence[str]) -> tuple[str, ...]:
    """Return the suggestion of names that are like one that is not known; nothing when none is."""
    return (f"did you mean {' or '.join(near)}?",) if near else ()


class Conflict(MusterError):
    """Somebody else is at it, or it is not in a state for this."""

    code = "conflict"


class AlreadyContinued(Conflict):
    """The run has a continuation; whoever wanted another one goes on from there."""

    code = "already_continued"


class NameTaken(Conflict):
    """A run that was to be the only one of its name is not; whoever wanted it goes on with that one."""

    code = "name_taken"


class MergeConflict(Conflict):
    """Two branches changed the same lines; nothing was merged."""

    code = "merge_conflict"
    exit_code = 1

    def __init__(self, message: str, *, files: tuple[str, ...], suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.files = files

    def record(self) -> dict[str, Any]:
        """Return the error with the files that need a person."""
        return super().record() | {"files": list(self.files)}


class KeyTaken(MusterError):
    """The journal has an entry under this key already."""

    code = "key_taken"


class AccessDenied(MusterError):
    """The user may not do this."""

    code = "forbidden"
    exit_code = 3


class LimitReached(MusterError):
    """A limit of the service is reached; the same may be possible after some seconds."""

    code = "limit"
    retryable = True

    def __init__(self, message: str, *, retry_after: float, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.retry_after = retry_after


class QueueFailed(MusterError):
    """The server of the queue cannot be reached; the store has everything that it had."""

    code = "queue"
    retryable = True


def _places_of(wanted: str, name: str, value: object) -> Iterator[str]:
    """Yield where a text stands in the value of a field: the field, or entries of a list."""
    if value == wanted:
        yield name
    elif isinstance(value, list | tuple):
        yield from (f"{name}[{place}]" for place, one in enumerate(value) if one == wanted)


class NotFound(MusterError):
    """There is no such thing."""

    code = "not_found"
    exit_code = 5

    def __init__(self, message: str, *, suggestions: tuple[str, ...] = (), given: str = "") -> None:
        super().__init__(message, suggestions=suggestions)
        self.given = given  # the name that stands for nothing; a door knows in which of its fields it was given

    def named(self, given: Mapping[str, object]) -> Sequence[FieldFlaw]:
        """Return the flaws, or if there are none that of the one field which has the name that stands for nothing."""
        if self.flaws or not self.given:
            return self.flaws
        paths = [path for name, value in given.items() for path in _places_of(self.given, name, value)]
        way = next(iter(self.suggestions), "")
        flaw = FieldFlaw(path="", message=self.message, code=FlawCode.UNKNOWN, suggestion=way, by_itself=True)
        return [replace(flaw, path=path) for path in paths] if len(paths) == 1 else ()

    @classmethod
    def of(cls, flaws: Sequence[FieldFlaw]) -> "NotFound":
        """Return the error for all fields that name what there is not."""
        ways = tuple(dict.fromkeys(flaw.suggestion for flaw in flaws if flaw.suggestion))
        error = cls("; ".join(map(str, flaws)), suggestions=ways)
        error.flaws = tuple(flaws)
        return error
