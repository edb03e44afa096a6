"""The command of a process evaluator: whether its words stay inside of the project, and whether its files exist.

A program is named as on PATH, or by a path below the project's root. What a program then does is not looked at.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

Complaint = tuple[int, str]  # the number of the word, and what is wrong with it

_UPWARDS = re.compile(r"(?:^|[\s/=:'\"])\.\.(?:[\s/:'\"]|$)")
_INSIDE = re.compile(r"(?<=[\s=:'\"();|&<>])(/[^\s'\"();|&<>]+)")
_INTERPRETER = re.compile(r"(?:python|pypy|bash|dash|sh|zsh|node|deno|bun|ruby|perl|php|lua|java|Rscript)[\d.]*")
_PROGRAM_IN_OPTION = ("-c", "-m", "-e", "-r", "-s", "-", "-cp", "-classpath", "--eval", "--print", "run")
_DEVICES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr")
_SCRIPTS = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r")


def leaving(command: Sequence[str], folders: Sequence[Path]) -> Iterator[Complaint]:
    """Return the words that lead out of the project, whose folders are those of the suite and above it."""
    for index, word in enumerate(command):
        path = _path_in(word)
        if _UPWARDS.search(word):
            yield index, f"{word!r} may not be named: name a file below the project's folder, without .."
        elif path.startswith("/") and path not in _DEVICES and not _is_below(path, folders[-1]):
            hint = f"; name a program without its folder: {Path(path).name}" if index == 0 else ""
            yield index, f"{word!r} may not be named: it is outside of the project, {folders[-1]}{hint}"
        elif (named := _outside_in(word, folders[-1])) is not None:
            yield index, f"{named!r} may not be named: it is outside of the project, {folders[-1]}"
        elif any(_leads_out(folder / path, folders[-1]) for folder in folders):
            yield index, f"{word!r} may not be named: it is a link that leads out of {folders[-1]}"


def missing(command: Sequence[str], folders: Sequence[Path]) -> Iterator[Complaint]:
    """Return the words that name a file which is in none of the folders: the program's, and that of its script."""
    script = _script_of(command) or next((word for word in command[1:] if _is_script(word)), None)
    for index, word in enumerate(command):
        named = (index == 0 and "/" in word) or word is script or word.startswith("./")
        if named and not any(_exists(folder, word) for folder in folders):
            yield index, f"there is no file {word} beside the suite, in {folders[0]}, or above it"


def not_installed(command: Sequence[str], folders: Sequence[Path]) -> str:
    """Return what is to be said of a program that is neither on PATH nor a file here; empty when it is."""
    program = command[0]
    if "/" in program or shutil.which(program) or any(_exists(folder, program) for folder in folders):
        return ""
    return f"there is no program {program} on PATH of this machine"


def _path_in(word: str) -> str:
    """Return the path in a word: an option may have one after its sign."""
    return word.partition("=")[2] if word.startswith("-") and "=" in word else word


def _outside_in(word: str, root: Path) -> str | None:
    """Return a file outside of the project that is named inside of a word, as in a script for a shell."""
    for found in _INSIDE.finditer(word):
        if found[1] not in _DEVICES and Path(found[1]).exists() and not _is_below(found[1], root):
            return found[1]
    return None


def _leads_out(path: Path, root: Path) -> bool:
    try:
        return path.exists() and not path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):  # a name that is too long for a file
        return False


def _script_of(command: Sequence[str]) -> str | None:
    """Return the file that an interpreter is given: its first argument, unless the program is in an option."""
    if not _INTERPRETER.fullmatch(Path(command[0]).name):
        return None
    for word in command[1:]:
        if word in _PROGRAM_IN_OPTION:
            return None
        if not word.startswith("-"):
            return word
    return None


def _is_below(path: str, root: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(root) or Path(path).resolve().is_relative_to(root)


def _is_script(word: str) -> bool:
    return word.lower().endswith(_SCRIPTS) and not word.startswith("-") and not re.search(r"\s", word)


def _exists(folder: Path, word: str) -> bool:
    try:
        return (folder / word).is_file()
    except (OSError, ValueError):  # a name that is too long for a file
        return False
