"""What a command says: answers on standard output, everything else on standard error; texts of strangers made safe."""

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from muster.domain.canonical import Json
from muster.domain.errors import MusterError, exit_code_of

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """What the shared options say, for one command."""

    command: str = ""
    json: bool = False
    quiet: bool = False
    home: Path | None = None

    def joined(self, other: "CommonOptions") -> "CommonOptions":
        """Take over what was said further to the right; a flag that was given stays given."""
        return CommonOptions(
            command=other.command or self.command,
            json=self.json or other.json,
            quiet=self.quiet or other.quiet,
            home=other.home or self.home,
        )


PIPE_WIDTH = 160
USUAL_WIDTH = 80  # of a terminal that does not say
LOG_LINES = 20
_FILLED_UP = re.compile(r" +\n")


def console(*, stderr: bool = False) -> "Console":
    """Make a console; a pipe has no width of its own, so it gets plenty."""
    from rich.console import Console

    file = sys.stderr if stderr else sys.stdout
    if file.isatty():
        return Console(file=file, highlight=False, markup=False, emoji=False)
    return Console(file=TrimmedFile(file), width=PIPE_WIDTH, highlight=False, markup=False, emoji=False)  # type: ignore[arg-type]


class TrimmedFile:
    """A file for a console that is not a terminal: without the spaces that fill a table up at its right.

    A reader that closes its pipe early, such as `head -1`, changes nothing about the command and its exit code.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write whole lines."""
        write_to(self._file, _FILLED_UP.sub("\n", text))
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        write_to(self._file, "")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def write_to(file: TextIO, text: str) -> None:
    """Write to standard output or standard error; what is left for a reader that closed its pipe goes nowhere."""
    try:
        file.write(text)
        file.flush()
    except BrokenPipeError:
        discard(file)


def discard(file: TextIO) -> None:
    """Discard what is left of an output, so that neither later writes nor the end of the process fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


def answer(common: CommonOptions, data: Any, tell: Callable[["Console"], None]) -> None:
    """Print the answer: one envelope, or for a person."""
    if common.json:
        print_json({"ok": True, "command": common.command, "data": data})
    else:
        tell(console())


def answer_list(
    common: CommonOptions, data: Sequence[Any], tell: Callable[["Console"], None], *, cut: bool, noun: str
) -> None:
    """Print a list of the newest of something: the envelope and a person are told whether there are more."""
    if common.json:
        print_json({"ok": True, "command": common.command, "data": data, "more": cut})
        return
    tell(console())
    if cut:
        note(common, f"these are the newest {noun}; --limit N shows more")


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    write_to(sys.stdout, json_text(value) + "\n")


def json_text(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=methodcaller("builtins"))  # of views, which help does not load


def say(text: str) -> None:
    """Print one line of an answer that comes bit by bit; raises BrokenPipeError when nobody reads it any more."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(common: CommonOptions, text: str) -> None:
    """Print something that is good to know; not when quiet."""
    if not common.quiet:
        warn(text)


def warn(text: str) -> None:
    """Print something that must be known."""
    write_to(sys.stderr, clean(_without_secrets(text)) + "\n")


def _without_secrets(told: Any) -> Any:
    """Take out what looks like a secret: this ends in logs of machines."""
    from muster.text.secrets.redaction import Redactor  # its rules are many, and most commands warn of nothing

    return Redactor().json(told)


def fail(common: CommonOptions, error: MusterError, data: Any = None) -> int:
    """Print an error and give its exit code; with `data`, what there is in spite of it."""
    record = error.record()
    told = {"code": record["code"], "message": record["message"], "suggestions": list(record["suggestions"])}
    if "fields" in record:
        told["fields"] = record["fields"]
    return fail_with(common, told | _left_behind(error, record), exit_code_of(error), data)


def _left_behind(error: MusterError, record: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a program left behind when it failed, be it the cause of a failed run."""
    cause = {**record, **(getattr(error, "error", None) or {})}
    return {name: cause[name] for name in ("tool", "log") if cause.get(name)}


def quote_log(log: str, *, above: str = "") -> None:
    """Show the end of what a program wrote to standard error, unless it stands above already."""
    lines = log.rstrip("\n").split("\n")
    if log.strip() and log.strip() not in above:
        if len(lines) > LOG_LINES:
            warn(f"  │ … {len(lines) - LOG_LINES} lines before")
        for line in lines[-LOG_LINES:]:
            warn(f"  │ {line}")


def fail_with(common: CommonOptions, told: Mapping[str, Any], exit_code: int, data: Any = None) -> int:
    """Print what went wrong, in the form asked for."""
    if common.json:
        envelope = {"ok": False, "command": common.command, "error": _without_secrets(told)}
        print_json(envelope if data is None else envelope | {"data": data})
    else:
        # A program's own words may be lines: they stay below the one that they belong to.
        warn("\n    ".join(_wrapped(f"error: {told['message'].rstrip()}", "  ")))
        quote_log(str(told.get("log", "")), above=told["message"])
        for suggestion in told["suggestions"]:
            if suggestion not in told["message"]:
                warn("\n".join(_wrapped(f"  {suggestion}", "    ")))
    return exit_code


def _wrapped(text: str, indent: str) -> list[str]:
    """Return the lines of a text, on a terminal none wider than it; commands stay whole, for those who copy them."""
    if not sys.stderr.isatty():
        return text.split("\n")
    width = _terminal_width()
    return [
        "\n".join(textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))
        if len(line) > width and not line.startswith("  muster ")
        else line
        for line in text.split("\n")
    ]


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_WIDTH
    except OSError:
        return USUAL_WIDTH


_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, screen
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # all the short ones
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MAX_SEQUENCE = 4096


def clean(text: str) -> str:
    """Take out everything that a terminal would obey."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


class TerminalCleaner:
    """Cleans text that comes in pieces; a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what is safe by now; the beginning of a sequence is held back until its end comes."""
        text = _SEQUENCE.sub("", self._held + piece)
        start = text.find("\x1b")
        if start < 0 or len(text) - start > _MAX_SEQUENCE:
            self._held = ""
            return clean(text)
        self._held = text[start:]
        return clean(text[:start])

    def finish(self) -> str:
        """Return what is left."""
        held, self._held = self._held, ""
        return clean(held)
