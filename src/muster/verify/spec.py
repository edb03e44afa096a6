"""The spec of a verification as it is stored, and back: strict, since a program of the user's may write one too."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from muster.domain.canonical import Json
from muster.domain.dispatch import MODES, Mode
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw
from muster.text.declared_values import read_value
from muster.text.expressions import parse
from muster.text.json_documents import flaw_of
from muster.text.schemas.json_schema import schema_flaw
from muster.text.words import choice_error
from muster.verify.declaration.forms import MIN_CHUNK, PARSERS, command_flaw, glob_flaw, name_flaw
from muster.verify.declaration.resolve import THRESHOLDS
from muster.verify.declaration.verification import (
    Kind,
    Limits,
    Verification,
    Verifier,
)

NO_VERIFICATION = "not a valid spec of a verification"
_ALWAYS = ("thresholds",)  # of a verifier: none at all is something else than none said
Flaws = Iterator[str]


def stored(verification: Verification) -> Any:
    """Return a spec as it is stored: what is as usual is left out."""
    return _lean(verification)


def read_spec(spec: Any) -> Verification:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    return read_value(_with_thresholds(spec), Verification, about=NO_VERIFICATION, rules=_rules)


def _rules(spec: Verification) -> Iterator[FieldFlaw]:
    yield from (FieldFlaw(path="", message=words) for words in _flaws(spec))


def _lean(value: Any) -> Json:
    if is_dataclass(value):
        kept = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _lean(found) for field, found in kept if _is_told(field, found, value)}
    if isinstance(value, tuple | list):
        return [_lean(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _lean(item) for key, item in value.items()}
    return str(value) if isinstance(value, StrEnum) else value


def _is_told(field: "Field[Any]", found: Any, owner: Any) -> bool:
    if isinstance(owner, Verifier) and field.name in _ALWAYS:
        return True
    usual = field.default_factory() if field.default_factory is not MISSING else field.default
    return bool(found != usual)


def _with_thresholds(spec: Any) -> Any:
    """Return agents that say nothing of thresholds the usual ones; an empty list says that nothing is asked of them."""
    usual = {"thresholds": list(THRESHOLDS)}
    verifiers = spec.get("verifiers") if isinstance(spec, Mapping) else None
    if not isinstance(verifiers, list | tuple):
        return spec
    return {**spec, "verifiers": [{**usual, **one} if isinstance(one, Mapping) else one for one in verifiers]}


def _flaws(spec: Verification) -> Flaws:
    yield from _path_flaws(spec)
    yield from _threshold_flaws("thresholds", spec.thresholds)
    yield from _limit_flaws(spec.limits)
    if not spec.verifiers:
        yield "verifiers: at least one is needed"
    names = [verifier.name for verifier in spec.verifiers]
    for verifier in spec.verifiers:
        yield from (f"{verifier.name or 'a verifier without a name'}: {flaw}" for flaw in _verifier_flaws(verifier))
    yield from (f"{name}: duplicate name" for name in sorted({n for n in names if names.count(n) > 1}))
    waves = {verifier.wave for verifier in spec.verifiers}
    yield from (f"waves: unknown wave {wave}" for wave in spec.waves if wave not in waves)
    yield from (f"agents: unknown agent {name!r}" for name in spec.agents if name not in names)


def _path_flaws(spec: Verification) -> Flaws:
    if not _is_absolute(spec.root):
        yield f"root: {spec.root!r} must be an absolute path"
    if spec.source and not _is_absolute(spec.source):
        yield f"source: {spec.source!r} must be an absolute path"
    for marker in spec.markers:
        if not _is_absolute(marker.path):
            yield f"markers: {marker.path!r} must be an absolute path"
    marked = (file for marker in spec.markers for file in marker.files)
    secrets = (*(one.file for one in spec.allow_secrets), *(one.file for one in spec.unseen_secrets))
    for path in (*spec.files, *marked, *secrets):
        if not _is_below(path):
            yield f"files: {path!r} must be a path below the root, without . and .."
    if len(set(spec.files)) < len(spec.files):
        yield "files: a path is listed twice"


def _limit_flaws(limits: Limits) -> Flaws:
    if limits.chunk_bytes < MIN_CHUNK:
        yield f"limits: chunk_bytes must be at least {MIN_CHUNK}"
    if limits.overlap_lines < 0 or limits.total_bytes < 1:
        yield "limits: overlap_lines must be at least 0, and total_bytes at least 1"


def _verifier_flaws(verifier: Verifier) -> Flaws:
    yield from filter(None, [name_flaw(verifier.name), *(glob_flaw(glob) for glob in verifier.include)])
    if verifier.wave < 1:
        yield "wave: must be at least 1"
    yield from _threshold_flaws("thresholds", verifier.thresholds)
    yield from _command_flaws(verifier) if verifier.kind is Kind.COMMAND else _model_flaws(verifier)


def _model_flaws(verifier: Verifier) -> Flaws:
    if not verifier.prompt.strip():
        yield "prompt: missing"
    if not verifier.model:
        yield "model: missing"
    if verifier.dispatch not in (None, *Mode):
        yield f"dispatch: must be {MODES}"
    if verifier.max_tokens is not None and verifier.max_tokens < 1:
        yield "max_tokens: must be at least 1"
    if verifier.schema is not None and (wrong := flaw_of(verifier.schema) or schema_flaw(verifier.schema)):
        yield f"schema: not a valid JSON Schema: {wrong}"
    if verifier.command:
        yield "command: only for agents of the kind command"


def _command_flaws(verifier: Verifier) -> Flaws:
    if wrong := command_flaw(verifier.command):
        yield f"command: {wrong}"
    if any("\0" in word for word in (*verifier.command, *verifier.environment, *verifier.environment.values())):
        yield "command: contains a NUL character"
    if verifier.parser not in PARSERS:
        yield f"parser: {choice_error(tuple(PARSERS), verifier.parser)}"
    if not verifier.exits:
        yield "exits: at least one exit code is needed"
    if verifier.timeout is not None and not verifier.timeout > 0:
        yield "timeout: must be more than 0"


def _threshold_flaws(where: str, expressions: tuple[str, ...]) -> Flaws:
    for expression in expressions:
        try:
            parse(expression)
        except BadArgument as error:
            yield f"{where}: {error.message}"


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() and "\0" not in path


def _is_below(path: str) -> bool:
    return bool(path) and "\0" not in path and not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))
