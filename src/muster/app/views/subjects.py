"""What a run is about, on one line: taken from its stored spec, short, and without secrets."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from muster.domain.run import Run
from muster.text.plain import plain_words
from muster.text.secrets.redaction import redact
from muster.text.words import count, one_line

LONGEST = 160  # characters of a subject
_READ = 2_000  # characters of a text that are looked at

Spec = Mapping[str, Any]


def subject_of(run: Run) -> str | None:
    """Return who is asked what in a run; None for workloads of the user's own, whose specs may be anything."""
    about = _ABOUT.get(run.workload)
    if about is None or not isinstance(run.spec, Mapping):
        return None
    found = (_text(part) for part in about(run.spec))
    return one_line(redact(": ".join(filter(None, found))).text, LONGEST) or None


def _text(value: object) -> str:
    """Return the first paragraph of a text, as plain words."""
    if not isinstance(value, str):
        return ""
    paragraphs = (plain_words(one) for one in value[:_READ].strip().split("\n\n"))
    return next(filter(None, paragraphs), "")


def _part(value: object, *names: str | int) -> Any:
    """Return what stands at a path of a stored value; None where there is nothing."""
    for name in names:
        inner = value.get(name) if isinstance(value, Mapping) and isinstance(name, str) else None
        if isinstance(name, int) and isinstance(value, Sequence) and not isinstance(value, str):
            inner = value[name] if name < len(value) else None
        value = inner
    return value


def _texts(value: object) -> Sequence[str]:
    """Return one text or several as a list; whatever else there is is left out."""
    found = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    return [one for one in found if isinstance(one, str)]


def _listed(value: object) -> str:
    return ", ".join(_texts(value))


def _named(value: object) -> str:
    """Return the names of files without the folders of this machine."""
    return ", ".join(PurePath(one).name or one for one in _texts(value))


def _battle(spec: Spec) -> tuple[object, ...]:
    return spec.get("agent"), spec.get("goal") or spec.get("user_message")


def _scale(spec: Spec) -> tuple[object, ...]:
    battle = spec.get("battle")
    agent, goal = _battle(battle) if isinstance(battle, Mapping) else (None, None)
    return _listed(spec.get("agents")) or agent, goal or _part(spec, "goals", 0, "goal")


def _files(spec: Spec) -> tuple[object, ...]:
    files = spec.get("files")
    if not isinstance(files, Sequence):
        return ()
    first = _part(files, 0)
    return count(len(files), "file"), first if isinstance(first, str) else _part(first, "path")


_ABOUT: Mapping[str, Callable[[Spec], tuple[object, ...]]] = {
    "ask": lambda spec: (spec.get("agent"), spec.get("prompt")),
    "battle": _battle,
    "chain": lambda spec: (_part(spec, "chain", "name"),),
    "deliberation": lambda spec: (spec.get("question"),),
    "fix": _files,
    "generate": lambda spec: (spec.get("agent"), spec.get("skill") or _named(spec.get("extend"))),
    "scale": _scale,
    "suite": lambda spec: (_listed(spec.get("agents")), _named(spec.get("path"))),
    "task": lambda spec: (spec.get("agent"), spec.get("prompt")),
    "waves": _files,
}
