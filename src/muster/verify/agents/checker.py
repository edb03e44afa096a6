"""A checker that is run over files: owned, timed and journaled like every call, and read by the parser for it.

What it says counts only when the files were the same before and after as when they were read in.
"""

import asyncio
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import Any

from muster.domain.agent import Command
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json, digest
from muster.domain.errors import BadConfiguration, ReplayMiss
from muster.engine.context import Context
from muster.judging.base import FAILED_CALL, code_of, words_of
from muster.text.secrets.redaction import Redactor, redact
from muster.text.words import choice_error
from muster.verify.agents.model_agent import MAX_FAILURE, UNPARSED
from muster.verify.declaration.verification import Verifier
from muster.verify.findings.answers import MAX_PATH, FindingsAnswer, bounded
from muster.verify.findings.finding import Examined, Finding, Rejected
from muster.verify.sources.source import FileInfo, Source
from muster.verify.tools.lines import Parser, tail
from muster.verify.tools.registry import EXPLAINED, PARSERS

FILES = "{files}"
CHANGED = "changed"
NO_FILES = "no_files"

_LARGE = 262_144  # characters of output that are read beside the event loop


async def run_checker(
    ctx: Context, verifier: Verifier, root: str, files: Sequence[Source | FileInfo], *, key: str
) -> Examined:
    """Run a checker over files below a root; its failure is a value, what stops the run passes through."""
    parser = PARSERS.get(verifier.parser)
    if parser is None:
        raise BadConfiguration(f"agent {verifier.name!r}: the parser {choice_error(tuple(PARSERS), verifier.parser)}")
    check = _Check(ctx, verifier, root, files, key)
    try:
        return await check.run(parser)
    except ReplayMiss as error:
        return check.failed(error.message, error.code)


def arguments(command: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """Put files into a command, one argument for each; a path can neither be an option nor name a file of options."""
    named = [path if path[0].isalnum() or path[0] in "._" else f"./{path}" for path in files]
    return tuple(word for one in command for word in (named if one == FILES else (one,)))


@dataclass(frozen=True, slots=True)
class _Check:
    """One run of a checker."""

    ctx: Context
    verifier: Verifier
    root: str
    files: Sequence[Source | FileInfo]
    key: str

    async def run(self, parser: Parser) -> Examined:
        """Look, run it, look again, and read what it said."""
        if not self.files:
            return self.failed("no file matches", NO_FILES)
        if why := await self._changed("before"):
            return self.failed(why, CHANGED)
        command = Command(
            argv=arguments(self.verifier.command, [file.path for file in self.files]),
            folder=self.root,
            environment=dict(self.verifier.environment),
            exits=self._read_exits,
            quotes=True,
        )
        try:
            reply = await self.ctx.call(command, self._request(), key=self.key, timeout=self.verifier.timeout)
        except FAILED_CALL as error:
            return self.failed(words_of(error).replace(command.name, self._name), code_of(error))
        if why := await self._changed("after"):
            return self.failed(why, CHANGED, reply)
        return await self._read(parser, reply)

    def failed(self, why: str, code: str, reply: Reply | None = None) -> Examined:
        """Return what is said when there is no report."""
        return replace(self._told(reply), failure=bounded(redact(why).text, MAX_FAILURE), code=code)

    @property
    def _read_exits(self) -> tuple[int, ...]:
        """Codes with which its output is read: also those that are no report, where it says what went wrong."""
        told = EXPLAINED.get(self.verifier.parser, ())
        return (*self.verifier.exits, *(code for code in told if code not in self.verifier.exits))

    async def _read(self, parser: Parser, reply: Reply) -> Examined:
        trace = reply.trace
        log, code = ("", 0) if trace is None else (trace.log, trace.exit)
        if len(reply.text) < _LARGE:
            parsed = parser(reply.text, log, code)
        else:
            parsed = await asyncio.to_thread(parser, reply.text, log, code)
        if parsed.flaw:
            return self.failed(f"its output cannot be read: {parsed.flaw}", UNPARSED, reply)
        placed = await self._placed(parsed.findings)
        findings = tuple(one for one in placed if isinstance(one, Finding))
        rejected = tuple(one for one in placed if isinstance(one, Rejected))
        if code not in self.verifier.exits or (code != 0 and not findings):
            return self.failed(_unread(code, rejected, reply, log), UNPARSED, reply)
        return self._report(parsed, findings, rejected, reply)

    def _report(
        self, parsed: FindingsAnswer, findings: tuple[Finding, ...], rejected: tuple[Rejected, ...], reply: Reply
    ) -> Examined:
        return replace(
            self._told(reply),
            findings=findings,
            rejected=rejected,
            score=parsed.score,
            parts=parsed.parts,
            coverage=parsed.coverage,
        )

    async def _changed(self, when: str) -> str:
        digests = {file.path: file.digest for file in self.files}
        found = await self._step(when, lambda: list(changed(self.root, digests)))
        if not found:
            return ""
        return f"files were changed {when} it ran: {', '.join(map(str, found))}"

    async def _placed(self, findings: Sequence[Finding]) -> list[Finding | Rejected]:
        """Find out which findings are at lines that exist; what is not verified is looked up on disk, once."""
        known = {file.path: file.lines if isinstance(file, FileInfo) else len(file.lines) for file in self.files}
        unknown = elsewhere(findings, self.root, known)
        looked: Mapping[str, Json] = {}
        if unknown:
            looked = await self._step("place", lambda: places(self.root, unknown))
        lines = LineCounts(root=self.root, known=known, looked=looked)
        redactor = Redactor()  # a failed comparison shows what was compared
        return [locate(_redacted(finding, redactor), lines) for finding in findings]

    async def _step(self, name: str, look: Callable[[], Json]) -> Any:
        async def work() -> Json:
            return await asyncio.to_thread(look)

        return await self.ctx.step(f"{self.key}/{name}", work)

    def _request(self) -> Request:
        """Ask nothing: a checker is told by its arguments. The contents are part of what makes two runs the same."""
        contents = digest([[file.path, file.digest] for file in self.files])
        return Request(messages=(Message(role=Role.USER),), context={"files": contents})

    def _told(self, reply: Reply | None) -> Examined:
        lines = sum(file.lines if isinstance(file, FileInfo) else len(file.lines) for file in self.files)
        shown = 0.0 if reply is None else reply.timings.shown
        cost = 0 if reply is None else reply.cost
        return Examined(lines=lines, model=self._name, seconds=shown, cost=cost, keys=(self.key,))

    @property
    def _name(self) -> str:
        """The command as it was declared; with all files in it nobody could read it."""
        return shlex.join(self.verifier.command)


def _redacted(finding: Finding, redactor: Redactor) -> Finding:
    return replace(finding, finding=redactor.text(finding.finding), fix=redactor.text(finding.fix))


def _unread(code: int, rejected: Sequence[Rejected], reply: Reply, log: str) -> str:
    """Return the failure of a checker whose exit code reports problems that its output does not show."""
    said = tail(reply.text) or tail(log)
    ends = f"; its output ends: {said}" if said else ""
    if rejected:
        first = rejected[0]
        why = f"all {len(rejected)} findings are rejected: {first.finding.file}: {first.why}"
        return f"it exited with {code}, and {why}{ends}"
    return f"it exited with {code}, and its output has no finding that can be read{ends}"


MAX_CHANGED = 20  # that are named
MAX_PLACES = 2_000  # files besides the verified ones that are looked at
_BLOCK = 1 << 20


def changed(root: str, digests: Mapping[str, str]) -> list[str]:
    """Name the files whose bytes are not what they were."""
    found = []
    for path, known in digests.items():
        if _digest(Path(root) / path) != known:
            found.append(path)
            if len(found) == MAX_CHANGED:
                break
    return found


def places(root: str, paths: Iterable[str]) -> dict[str, Json]:
    """Find files by the paths that a checker gives: each with its path below the root, and its number of lines."""
    top = _real(Path(root))
    found: dict[str, Json] = {}
    for path in sorted(set(paths))[:MAX_PLACES]:
        real = None if top is None else _real(Path(root) / path)
        if real is None or top is None or not real.is_relative_to(top) or not real.is_file():
            found[path] = None
        else:
            lines = _lines(real)
            found[path] = None if lines is None else [real.relative_to(top).as_posix(), lines]
    return found


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _real(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # not there, a NUL in it, a loop of links
        return None


def _lines(path: Path) -> int | None:
    count, last = 0, b"\n"
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                count, last = count + block.count(b"\n"), block[-1:]
    except OSError:
        return None
    return count + (last != b"\n")


_LAST_LINE = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounts:
    """How many lines files have: those that are verified, and those that were looked up by the path that was given."""

    root: str
    known: Mapping[str, int]
    looked: Mapping[str, Any]  # the path below the root and the number of lines, or None

    def of(self, path: str) -> tuple[str, int] | None:
        """Return a file's path below the root and its number of lines; None when there is no such file."""
        own = relative(path, self.root)
        if own in self.known:
            return own, self.known[own]
        found = self.looked.get(path)
        if not isinstance(found, Sequence):
            return None
        own, lines = str(found[0]), int(found[1])
        return own, self.known.get(own, lines)


def relative(path: str, root: str) -> str:
    """Return a path below a root as it is named there, as far as that can be known without a look at the disk."""
    below = posixpath.relpath(path, root) if path.startswith("/") else path
    return posixpath.normpath(below) if below else ""


def elsewhere(findings: Iterable[Finding], root: str, known: Mapping[str, int]) -> list[str]:
    """Name the files of findings that are not verified, so that somebody can look them up."""
    files = dict.fromkeys(finding.file for finding in findings)
    return sorted(path for path in files if path and relative(path, root) not in known)[:MAX_PLACES]


def locate(finding: Finding, lines: LineCounts) -> Finding | Rejected:
    """Return a finding at lines that exist, or say why it cannot be."""
    place = lines.of(finding.file) if finding.file else None
    if place is None:
        return _rejected(finding, "no such file below the root" if finding.file else "no file is named")
    path, count = place
    # Checkers say 0 for a whole file, 1 for an empty one, and count the end of a file as a line of its own.
    last = max(1, count)
    if not 0 <= finding.line <= last + 1:
        return _rejected(replace(finding, file=path), f"the file has {count} lines")
    line = min(max(1, finding.line), last)
    return replace(finding, file=path, line=line, end_line=min(max(line, finding.end_line), last))


def _rejected(finding: Finding, why: str) -> Rejected:
    """Keep what was said, as far as a journal can hold it."""
    line, end = (min(max(number, -1), _LAST_LINE) for number in (finding.line, finding.end_line))
    file = bounded(finding.file, MAX_PATH)
    return Rejected(finding=replace(finding, file=file, line=line, end_line=end), why=why)
