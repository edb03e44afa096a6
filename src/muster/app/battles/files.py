"""What is given beside a battle as texts and files: validators, prompts, images and documents."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from muster.app.base.media import media_file
from muster.battles.order import PromptVariant
from muster.battles.validators import ValidatorKind
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.media import Media
from muster.text.document_tree import Unreadable
from muster.text.files import shown, whole_text
from muster.text.json_documents import json_fault
from muster.text.words import choice_error

MAX_BYTES = 1_000_000
_FIELDS = {  # what the value of KIND=VALUE is
    ValidatorKind.REGEX: "pattern",
    ValidatorKind.CONTAINS: "text",
    ValidatorKind.JSON_SCHEMA: "schema",
    ValidatorKind.PROGRAM: "agent",
}


def read_validators(given: Iterable[str] = (), file: Path | None = None) -> list[Mapping[str, Json]]:
    """Return validators as a spec has them: those of KIND=VALUE, then those of a JSON file."""
    return [*map(_validator, given), *(() if file is None else _listed(file))]


def _validator(given: str) -> dict[str, Json]:
    kind, equals, value = given.partition("=")
    if not equals or not value:
        raise BadArgument(
            f"a validator must be KIND=VALUE, not {given!r}", suggestions=("write it like contains=done",)
        )
    if kind not in tuple(ValidatorKind):
        raise BadArgument(choice_error(tuple(ValidatorKind), kind), argument="the kind of a validator")
    found = _json(Path(value)) if kind == ValidatorKind.JSON_SCHEMA else value
    return {"kind": kind, _FIELDS[ValidatorKind(kind)]: found}


def _listed(file: Path) -> list[Mapping[str, Json]]:
    found = _json(file)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise BadFile(shown(file), "must be a JSON list of validators, each an object with kind")
    return found


def _json(path: Path) -> Any:
    text = _text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(shown(path), f"is not JSON: {json_fault(error)}") from None


def read_media(given: Iterable[str | Path | Media]) -> tuple[Media, ...]:
    """Return images and documents, those at paths with their bytes; raises BadArgument for all others."""
    return tuple(one if isinstance(one, Media) else media_file(one) for one in given)


def read_prompt(path: Path) -> PromptVariant:
    """Return a system prompt from a file, named after it."""
    text = _text(path).strip()
    if not text:
        raise BadFile(shown(path), "is empty")
    return PromptVariant(name=shown(path), text=text)


def _text(path: Path) -> str:
    if not path.exists():
        raise NotFound(f"no such file: {path}")
    try:
        return whole_text(path, MAX_BYTES)
    except Unreadable as error:
        raise BadFile(shown(path), error.message, line=error.line) from None
