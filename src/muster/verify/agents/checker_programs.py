"""Where the programs and files lie that the commands of checkers name, outside of what git knows of a repository.

What git knows is compared by its commits. What an interpreter imports from elsewhere, and what a program reads without
being told by its command, is not found here.
"""

import asyncio
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.git.repository import Git
from muster.verify.declaration.verification import Kind, Verification, Verifier
from muster.verify.findings.checker_files import words_of

_MAX_LINE = 256  # bytes of a first line that the system reads
_MAX_PATH = 4_096
_PATH = "PATH"
_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerHome:
    """Where checkers are run."""

    root: str  # an absolute path: that of the repository's files
    listed: Collection[str]  # files below it that git knows or would take
    path: str  # folders with programs, as PATH has them

    def knows(self, path: str) -> bool:
        """Return whether git knows a file or something in a folder, or all of the repository is below it."""
        below = os.path.relpath(path, self.root)
        known = below in self.listed or any(one.startswith(f"{below}/") for one in self.listed)
        return known or Path(self.root).is_relative_to(path)


async def outside_files_of(spec: Verification, path: str) -> tuple[str, ...]:
    """Return what the commands of a verification name and git does not know, as `outside_files` does."""
    listed = frozenset(await Git(Path(spec.root)).listed(Path(spec.root)))
    return await asyncio.to_thread(outside_files, spec.verifiers, CheckerHome(root=spec.root, listed=listed, path=path))


def outside_files(verifiers: Iterable[Verifier], home: CheckerHome) -> tuple[str, ...]:
    """Return the programs, files and folders that commands name and git does not know; they need not be there yet.

    `FOLDER/*.SUFFIX` stands for what lies beside a script, from where it takes its modules.
    """
    found: dict[str, None] = {}
    for one in verifiers:
        if one.kind is Kind.COMMAND:
            found |= dict.fromkeys(_of_command(one, home))
    return tuple(found)


def _of_command(verifier: Verifier, home: CheckerHome) -> Iterator[str]:
    folders = verifier.environment.get(_PATH, home.path)
    programs = {path for word in words_of(verifier.command) for path in _on_path(word, folders)}
    named = {path for text in _texts(verifier) for path in _places(text, home)}
    for path in sorted(programs | named):
        yield path
        if Path(path).is_file():
            yield from _run_with(Path(path), folders, home)


def _texts(verifier: Verifier) -> Iterator[str]:
    """Yield everything in a command and its environment that could name a file."""
    values = (value for name, value in verifier.environment.items() if name != _PATH)
    for word in (*words_of(verifier.command), *words_of(tuple(values))):
        yield from (word, word.rpartition("=")[2], word.removeprefix("@"), *word.split(os.pathsep))
        if word.startswith("-"):  # an option with its value in one word
            yield "/" + word.partition("/")[2]


def _on_path(word: str, folders: str) -> Iterator[str]:
    """Yield where a program is found, and where one would be found before it."""
    if "/" in word or word.startswith("-") or shutil.which(word, path=folders) is None:
        return
    for folder in folders.split(os.pathsep):
        yield str(Path(folder).absolute() / word)
        if shutil.which(word, path=folder) is not None:
            return


def _places(text: str, home: CheckerHome) -> Iterator[str]:
    """Yield the path that a text is, if git does not know what is there and it is not above the repository."""
    if not text or "\0" in text or len(text) > _MAX_PATH or "{" in text:
        return
    path = os.path.normpath(Path(home.root) / text)
    if not home.knows(path) and ("/" in text or os.path.lexists(path)):
        yield path


def _run_with(path: Path, folders: str, home: CheckerHome) -> Iterator[str]:
    """Yield what runs a script, and what stands for the modules beside it."""
    interpreter = _interpreter(path)
    suffix = path.suffix or (".py" if any("python" in word for word in interpreter) else "")
    if suffix in _SCRIPTS and not home.knows(str(path.parent)):
        yield f"{path.parent}/*{suffix}"
    for word in interpreter:
        yield from (word,) if word.startswith("/") else _on_path(word, folders)


def _interpreter(path: Path) -> Sequence[str]:
    """Return the words of a first line that names an interpreter."""
    try:
        with path.open("rb") as file:
            line = file.readline(_MAX_LINE)
    except OSError:
        return ()
    return line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else ()
