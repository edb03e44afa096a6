"""Reports by the name of their format: to an open file, or to a path, whole or not at all."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast
from uuid import uuid4

from muster.domain.errors import BadArgument
from muster.domain.redaction import Redactor
from muster.reports.suite.html import write_html
from muster.reports.suite.json_report import write_json
from muster.reports.suite.junit import write_junit
from muster.reports.suite.markdown import write_markdown
from muster.reports.suite.sarif import write_sarif
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite_run import SuiteRun

Writer = Callable[[SuiteRun, SuiteReport, TextIO], Awaitable[None]]

WRITERS: Mapping[str, Writer] = {
    "json": write_json,
    "junit": write_junit,
    "sarif": write_sarif,
    "markdown": write_markdown,
    "html": write_html,
}


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


async def write_report(suite: SuiteRun, report: SuiteReport, format_name: str, out: TextIO) -> None:
    """Write a report to an open file."""
    writer = WRITERS.get(format_name)
    if writer is None:
        raise BadArgument(f"there is no report format {format_name!r}", suggestions=(f"one of {', '.join(WRITERS)}",))
    await writer(suite, report, cast(TextIO, Redacting(out)))


def require_file(path: Path) -> None:
    """Refuse a path that no report can be written to."""
    if path.is_dir():
        raise BadArgument(f"{path} is a folder", suggestions=(f"name a file in it, like {path / 'report.html'}",))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise BadArgument(f"{path} is not a plain file", suggestions=("name a new file, or - for standard output",))


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
