"""Generated cases on their way into a suite file: read back and compared first, then put in place in one step."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import yaml

from muster.domain.errors import BadArgument, BadFile, Conflict
from muster.reporting.files import require_folder
from muster.suites.format.discovery import find_suites
from muster.suites.format.suite import open_suite

if TYPE_CHECKING:
    from muster.suites.values.case import Case


Cases = Sequence[Mapping[str, Any]]

_CASES = re.compile(r"^cases[ \t]*:[ \t]*(?:#.*)?$", re.MULTILINE)
_ITEM = re.compile(r"^( *)-(?=[ \t]|$)", re.MULTILINE)
_NEXT = re.compile(r"^(?:[^\s#-]|---|\.\.\.)", re.MULTILINE)  # the next key at the top, or the end of the document
_LEAD = re.compile(r"(?:^#.*\n|^[ \t]*\n)*\Z", re.MULTILINE)  # what stands right above it belongs to it


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and lists below their keys."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # A block that begins or ends with white space needs signs that are easily misread; such a text goes into quotes.
    block = not text[:1].isspace() and not text.endswith("\n\n")
    style = None if "\n" not in text else "|" if block else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """Write a value in YAML, as a person would."""
    return str(yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110))


def new_suite(skill: str, cases: Cases) -> str:
    """Write a suite."""
    return yaml_text({"schema_version": 1, "skill_or_agent": skill, "cases": list(cases)})


def extended(file: str, text: str, cases: Cases) -> str:
    """Return the text of a suite with cases at the end of its list; raises BadFile where there is no place for them."""
    windows = "\r\n" in text
    plain = text.replace("\r\n", "\n")
    if plain and not plain.endswith("\n"):
        plain += "\n"
    found = _with_tables(plain, cases) if file.endswith(".toml") else _with_items(file, plain, cases)
    return found.replace("\n", "\r\n") if windows else found


def _with_items(file: str, text: str, cases: Cases) -> str:
    head = _CASES.search(text)
    item = _ITEM.search(text, head.end()) if head else None
    if head is None or item is None:
        raise BadFile(file, "its cases are not a list with one '-' for each, so none can be appended")
    after = _NEXT.search(text, item.end())
    end = len(text)
    if after is not None:
        lead = _LEAD.search(text[: after.start()])
        end = after.start() if lead is None else lead.start()
    added = indent(yaml_text(list(cases)), item[1])
    return text[:end] + added + text[end:]


def _with_tables(text: str, cases: Cases) -> str:
    tables = ("\n[[cases]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in case.items()) for case in cases)
    return text + "".join(tables)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # texts and numbers are spelled like in JSON


NAME = "cases.yaml"


def file_to_extend(where: Path) -> Path:
    """Find the one suite that is to be extended, and make sure that it can be."""
    found = find_suites([where])
    if len(found) != 1:
        raise BadArgument(
            f"{where} has {len(found)} suites" if found else f"no suite found in {where}",
            suggestions=("name the file of one suite",),
        )
    path = Path(found[0]).resolve()
    extended(str(path), _read(path), [])
    require_folder(path.parent, path)
    return path


def file_to_create(folder: Path) -> Path:
    """Name the file of a new suite; one that is there is never overwritten."""
    path = folder / NAME
    if path.exists():
        raise BadArgument(f"{path} exists", suggestions=(f"muster generate --extend {folder}",))
    require_folder(folder, path, keep=False)
    return path


def create(path: Path, skill: str, cases: Cases) -> None:
    """Write a new suite."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _draft(path, new_suite(skill, cases)) as draft:
        _compare((), _cases(draft), cases, path)
        try:
            os.link(draft, path)  # unlike a rename, it fails when somebody was faster
        except FileExistsError:
            raise Conflict(f"{path} exists") from None


def extend(path: Path, cases: Cases) -> None:
    """Add cases to a suite; nothing that is in it changes."""
    with _draft(path, extended(str(path), _read(path), cases)) as draft:
        _compare(_cases(path), _cases(draft), cases, path)
        shutil.copymode(path, draft)
        draft.replace(path)


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    """Write a text beside its place, where the files that a suite names are found too."""
    draft = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        with draft.open("xb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _compare(before: "Iterator[Case] | tuple[()]", after: "Iterator[Case]", cases: Cases, path: Path) -> None:
    """Refuse a file whose cases are not those of before and then the new ones."""
    for old in before:
        new = next(after, None)
        if new is None or _bare(new) != _bare(old):
            raise BadFile(str(path), f"adding to it would change the case {old.id}; add the new ones by hand")
    for case, new in zip_longest(cases, after):
        if case is None or new is None or _said(new) != [message["content"] for message in case["input"]["messages"]]:
            raise BadFile(str(path), "the new cases would change when the file is read; add them by hand")


def _cases(path: Path) -> "Iterator[Case]":
    return iter(open_suite(path).cases())


def _bare(case: "Case") -> "Case":
    return replace(case, file="", line=0)


def _said(case: "Case") -> list[str]:
    return [message.text for message in case.messages]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadFile(str(path), "is not UTF-8") from None
