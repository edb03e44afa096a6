"""A checker that is run over files: owned, timed and journaled like every call, and read by the parser for it.

What it says counts only when the files were the same before and after as when they were read in.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.checks.findings.wording import bounded
from muster.checks.tool_output.parsed import Parsed, Parser, tail
from muster.checks.tool_output.registry import PARSERS
from muster.domain.agent import Command
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json, digest
from muster.domain.errors import BadConfiguration, ReplayMiss
from muster.domain.finding import Examined, Finding, Rejected
from muster.domain.redaction import Redactor, redact
from muster.domain.source import FileInfo, Source
from muster.domain.verification import Verifier
from muster.engine.context import Context
from muster.judges.failures import FAILED_CALL, code_of, words_of
from muster.judges.findings.disk import changed, places
from muster.judges.findings.failing import LONGEST_FAILURE, UNPARSED
from muster.judges.findings.locating import Lines, elsewhere, locate

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
        raise BadConfiguration(
            f"agent {verifier.name!r}: there is no parser {verifier.parser!r}",
            suggestions=(f"name one of {', '.join(PARSERS)}",),
        )
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
            return self.failed("there is no file for it", NO_FILES)
        if why := await self._changed("before"):
            return self.failed(why, CHANGED)
        command = Command(
            argv=arguments(self.verifier.command, [file.path for file in self.files]),
            folder=self.root,
            environment=dict(self.verifier.environment),
            exits=self.verifier.exits,
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
        """Give what is said when there is no report."""
        return replace(self._told(reply), failure=bounded(redact(why).text, LONGEST_FAILURE), code=code)

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
        if code != 0 and not findings:
            return self.failed(_unread(code, rejected, reply, log), UNPARSED, reply)
        return self._report(parsed, findings, rejected, reply)

    def _report(
        self, parsed: Parsed, findings: tuple[Finding, ...], rejected: tuple[Rejected, ...], reply: Reply
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
        return f"files are not as they were read in, {when} it ran: {', '.join(map(str, found))}"

    async def _placed(self, findings: Sequence[Finding]) -> list[Finding | Rejected]:
        """Find out which findings are at lines that exist; what is not verified is looked up on disk, once."""
        known = {file.path: file.lines if isinstance(file, FileInfo) else len(file.lines) for file in self.files}
        unknown = elsewhere(findings, self.root, known)
        looked: Mapping[str, Json] = {}
        if unknown:
            looked = await self._step("place", lambda: places(self.root, unknown))
        lines = Lines(root=self.root, known=known, looked=looked)
        redactor = Redactor()  # a failed comparison shows what was compared
        return [locate(_redacted(finding, redactor), lines) for finding in findings]

    async def _step(self, name: str, look: Callable[[], Json]) -> Json:
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
    """Say that a checker found something that nobody can be told."""
    said = tail(reply.text) or tail(log)
    ends = f"; its output ends: {said}" if said else ""
    if rejected:
        first = rejected[0]
        why = f"all {len(rejected)} that it says is rejected: {first.finding.file}: {first.why}"
        return f"it exited with {code}, so something is wrong, and {why}{ends}"
    return f"it exited with {code}, so something is wrong, and nothing of it could be read{ends}"
