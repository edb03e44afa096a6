"""Generated cases on their way into a file: read back and compared first, then put in place in one step."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.generate_text import Cases, extended, new_suite
from muster.domain.errors import BadArgument, BadFile, Conflict
from muster.formats.finding import find_suites
from muster.formats.suite import open_suite
from muster.reports.writing import require_folder

if TYPE_CHECKING:
    from muster.domain.case import Case

NAME = "cases.yaml"


def file_to_extend(where: Path) -> Path:
    """Find the one suite that is to be extended, and make sure that it can be."""
    found = find_suites([where])
    if len(found) != 1:
        raise BadArgument(
            f"{where} has {len(found)} suites" if found else f"there is no suite in {where}",
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
        raise BadArgument(f"{path} is there already", suggestions=(f"muster generate --extend {folder}",))
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
            raise Conflict(f"{path} is there already") from None


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
            raise BadFile(str(path), "the new cases would be read otherwise than they are; add them by hand")


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
