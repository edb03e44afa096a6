"""Files that reports are written to: whole or not at all, and without secrets."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from muster.domain.errors import BadArgument
from muster.text.secrets.redaction import Redactor


class Redacting:
    """An open file to which no secret is written that can be told by its look: reports are sent to others."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._redactor = out, Redactor()

    def write(self, text: str) -> int:
        """Write a text without its secrets."""
        return self._out.write(self._redactor.text(text))

    def writelines(self, texts: Iterable[str]) -> None:
        """Write some texts."""
        for text in texts:
            self.write(text)


def require_file(path: Path) -> None:
    """Refuse a path that no report can be written to."""
    if path.is_dir():
        raise BadArgument(f"{path} is a folder", suggestions=(f"name a file in it: {path / 'report.html'}",))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise BadArgument(f"{path} is not a regular file", suggestions=("name a new file, or - for standard output",))


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before anything is spent on what is to stand there; its folder is made."""
    require_file(path)
    require_folder(path.parent, path)


def require_folder(folder: Path, wanted: Path | None = None, *, keep: bool = True) -> None:
    """Make a folder, or refuse one in which no file can be made; `wanted` is what is to stand in it.

    Unless it is to be kept, what was made is gone afterwards.
    """
    made = [] if keep else [each for each in (folder, *folder.parents) if not each.exists()]
    trial = folder / f".{uuid4().hex[:8]}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch(exist_ok=False)  # permissions do not tell: a file system may be read-only, and root may do anything
        trial.unlink()
        for each in made:
            each.rmdir()
    except OSError as error:
        why = f"{folder} is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise BadArgument(
            f"{wanted or folder} cannot be written: {why}", suggestions=("choose another path",)
        ) from error


async def write_file(path: Path, write: Callable[[TextIO], Awaitable[None]]) -> None:
    """Write a file that is there as a whole or not at all; its folder is made."""
    require_file(path)
    unfinished = path.with_name(f".{path.name[:100]}.{uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What is no text, half a surrogate pair, becomes a question mark: a report must not fail on it.
        with unfinished.open("x", encoding="utf-8", errors="replace", newline="\n") as out:
            await write(out)
        unfinished.replace(path)
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # it was never made
            unfinished.unlink()
