"""`muster runs start`: one of the user's own workloads, started from the command line."""

import json
import sys
from pathlib import Path
from typing import Any

from muster.app import Muster
from muster.app.kinds import app_kind
from muster.cli.options import require_sendable
from muster.cli.runs.options import StartArguments
from muster.cli.runs.resume import drive_any
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions
from muster.domain.canonical import JsonObject
from muster.domain.errors import BadArgument
from muster.text.json_documents import json_fault

STDIN = "-"


def start(common: CommonOptions, arguments: StartArguments) -> int:
    """Start a run of one of your own workloads and wait for its end."""
    _refuse_ours(arguments.workload)
    require_sendable(arguments.order, arguments.patience, detach=arguments.detach)
    spec = read_input(arguments.input)

    async def work(muster: Muster) -> int:
        options = muster.runs.ordered(arguments.order)
        handle = await muster.start_with(arguments.workload, spec, options, detach=arguments.detach)
        return await drive_any(muster, handle, common, with_result=True)

    unpriced, patience = arguments.allow_unpriced, arguments.patience
    return with_muster(common, work, allow_unpriced=unpriced, patience=patience, create=True)


def _refuse_ours(workload: str) -> None:
    """Refuse work that has a command of its own, which checks what it is given before it is stored."""
    kind = app_kind(workload).kind
    if kind.command:
        raise BadArgument(f"{workload} is a built-in workload with its own command", suggestions=(kind.command,))


def read_input(given: str) -> Any:
    """Return the JSON that was given as text, as a file, or on standard input; raises BadArgument for anything else."""
    if given == STDIN:
        return _parsed(_decoded(sys.stdin.buffer.read(), "standard input"), "standard input")
    if given.lstrip()[:1] in ("{", "[", '"'):
        return _parsed(given, "--input")
    path = Path(given)
    if _is_file(path):
        return _parsed(_read(path), str(path))
    return _parsed(given, "--input")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # longer than a name can be
        return False


def _read(path: Path) -> str:
    try:
        return _decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise BadArgument(f"{path} cannot be read: {error.strerror}") from error


def _decoded(text: bytes, where: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeError:
        raise BadArgument(f"{where} is not UTF-8") from None


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        what = f"{where} is not JSON: {json_fault(error)}"
        if where == "--input":
            what = f"--input {text[:80]!r} is neither a file nor JSON: {json_fault(error)}"
        raise BadArgument(what, suggestions=("""write it like --input '{"agent": "sim/echo"}'""",)) from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is a duplicate key in one object")
    return found
