"""Kinds of work: what a feature says of one, as a value that every door reads.

A list of runs shows runs of all kinds, so a kind is cheap to load: what it is called, what a run of it is about and
what it came to are here, taken from the stored spec and result. What takes longer to load (the order, the workload, the
summary, the writers of reports) is named by its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from muster.domain.run import Run  # every help loads kinds, and no help a run

StoredSpec = Mapping[str, Json]


class Tone(StrEnum):
    """How a verdict is shown."""

    GOOD = "good"
    BAD = "bad"
    PLAIN = "plain"  # nobody said what would be good


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What a run came to."""

    ok: bool  # whether its command ends with exit code 0
    tone: Tone
    words: str
    rate: float | None = None  # of cases that passed, of battles that reached their goal
    findings: int | None = None


def passed_or_not(ok: bool, words: str, *, rate: float | None = None, findings: int | None = None) -> RunVerdict:
    """Return the verdict of work that has passed or has not."""
    return RunVerdict(ok=ok, tone=Tone.GOOD if ok else Tone.BAD, words=words, rate=rate, findings=findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReport:
    """How a run of a kind is summed up: a function `(store, run) -> RunReport`, and the names of the formats."""

    function: str  # "muster.battles.reports.formats:report_of_battle"
    formats: tuple[str, ...]  # those of its writers, which take longer to load

    @property
    def words(self) -> str:
        """The formats of a command in words."""
        *names, last = ("terminal", *self.formats)
        return f"{', '.join(names)} or {last}"


def _no_subject(spec: StoredSpec) -> tuple[object, ...]:
    return ()


def _no_trees(run: "Run") -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkKind:
    """A kind of work: its words, how it is ordered, what its runs are about, and what they came to.

    `order` names the class whose fields a caller gives. A kind whose spec is made of nothing but these has `spec_of`,
    and needs no code for its command, its routes and its tool: they are made from the order. `subject` takes from a
    stored spec who is asked what: texts that stand behind each other.
    `verdict` is asked about completed runs only, with their spec and result.
    """

    workload: str  # its name in the store; empty: it has no runs of its own
    word: str  # what people call one
    words: str = ""  # what they call several; by default with an s
    about: str = ""  # one sentence for help texts
    module: str = ""  # that registers the workload
    command: str = ""  # that starts one
    example: str = ""  # a whole command that starts one
    order: str = ""  # "muster.battles.order:BattleOrder"
    spec_of: Callable[[Any], Json] | None = None
    subject: Callable[[StoredSpec], tuple[object, ...]] = _no_subject
    verdict: "Callable[[Any, Any, Run], RunVerdict] | None" = None
    report: KindReport | None = None
    in_slot: bool = False  # it needs a slot of the pool, so that no worker takes it
    is_shared: bool = False  # as a child it may be driven by another worker than the run above it
    redacts: bool = False  # its agents read files, so that what they say is shown without secrets
    trees: "Callable[[Run], tuple[str, ...]]" = _no_trees  # working trees that an unfinished run of it uses
    tree_key: str = ""  # of the journal, whose value is the name of one more working tree
    battles: Callable[[Json], int] | None = None  # how many a run with a spec plays at the same time; None: none

    @property
    def is_built_in(self) -> bool:
        """Return whether it comes with Muster; of a workload of the user's own nothing but its name is known."""
        return bool(self.module)

    @property
    def command_name(self) -> str:
        """The name of the command that starts one."""
        return self.command.removeprefix("muster ")

    @property
    def class_name(self) -> str:
        """What people call one, as the name of a class is written."""
        return "".join(part.capitalize() for part in self.word.replace("-", " ").split())

    @property
    def title(self) -> str:
        """What people call one, at the beginning of a line."""
        return f"{self.word[:1].upper()}{self.word[1:]}"

    @property
    def plural(self) -> str:
        """What people call several."""
        return self.words or f"{self.word}s"


def require_kind(run: "Run", kind: WorkKind, word: str = "") -> None:
    """Raise BadArgument for a run of another kind; `word` is what people call that one."""
    if run.workload != kind.workload:
        raise BadArgument(
            f"run {run.id} is a run of {word or run.workload!r}, not a {kind.word}",
            suggestions=(f"muster runs show {run.id}",),
        )


def part_of(value: object, *names: str | int) -> Any:
    """Return what stands at a path of a stored value; None where there is nothing."""
    for name in names:
        inner = value.get(name) if isinstance(value, Mapping) and isinstance(name, str) else None
        if isinstance(name, int) and isinstance(value, Sequence) and not isinstance(value, str):
            inner = value[name] if name < len(value) else None
        value = inner
    return value


def joined(value: object) -> str:
    """Return one text or several on one line; whatever else there is is left out."""
    return ", ".join(_texts(value))


def file_names(value: object) -> str:
    """Return the names of files without the folders of this machine."""
    return ", ".join(PurePath(path).name or path for path in _texts(value))


def _texts(value: object) -> Sequence[str]:
    texts = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    return [text for text in texts if isinstance(text, str)]
