"""A model that is asked about a chunk of code: once, and once more for a repair. One that fails is a value."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from muster.domain.call import Quality, Reply, Request
from muster.domain.errors import BadOutput, ReplayMiss
from muster.domain.money import NOTHING
from muster.engine.context import Context
from muster.judging.base import FAILED_CALL, code_of, words_of
from muster.verify.agents.question import pose, pose_again
from muster.verify.declaration.verification import Verifier
from muster.verify.findings.answers import MAX_PATH, FindingsAnswer, bounded, read_text, read_value, speaks_flaw
from muster.verify.findings.finding import Examined, Finding, Rejected
from muster.verify.sources.source import Chunk, Piece

BAD = {
    Quality.CUT: "it was cut off before its end; be brief, and give the worst findings first",
    Quality.REFUSED: "it is a refusal",
    Quality.EMPTY: "it is empty",
    Quality.UNFINISHED: "it does not say that it came to its end, so it may not be whole",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsReading(FindingsAnswer):
    """What came of a reply, with paths as we spell them; with a flaw nothing else counts."""

    rejected: tuple[Rejected, ...] = ()


def read(reply: Reply, verifier: Verifier, chunk: Chunk) -> FindingsReading:
    """Read a reply."""
    if reply.quality in BAD and (reply.quality is not Quality.EMPTY or reply.data is None):
        return FindingsReading(flaw=BAD[reply.quality])
    answer = _answer(reply, verifier)
    if answer.flaw:
        return FindingsReading(flaw=answer.flaw)
    shown = _Shown(chunk)
    placed = [shown.place(finding) for finding in answer.findings]
    return FindingsReading(
        findings=tuple(one for one in placed if isinstance(one, Finding)),
        rejected=tuple(one for one in placed if isinstance(one, Rejected)),
        score=answer.score,
        parts=answer.parts,
        coverage=answer.coverage,
    )


def _answer(reply: Reply, verifier: Verifier) -> FindingsAnswer:
    """Read what a reply is; data beside a text counts only where the text does not say otherwise."""
    if reply.data is None or "{" in reply.text:
        return read_text(reply.text, verifier.shape, verifier.schema)
    answer = read_value(reply.data, verifier.shape, verifier.schema)
    flaw = answer.flaw or speaks_flaw(reply.text, answer.findings, "the text beside the data")
    return FindingsAnswer(flaw=flaw) if flaw else answer


class _Shown:
    """The lines that a chunk shows."""

    def __init__(self, chunk: Chunk) -> None:
        self._pieces: dict[str, list[Piece]] = {}
        for piece in chunk.pieces:
            self._pieces.setdefault(piece.path, []).append(piece)
        self._composed: dict[str, list[str]] = {}
        for path in self._pieces:
            self._composed.setdefault(_composed(path), []).append(path)

    def place(self, finding: Finding) -> Finding | Rejected:
        """Return a finding with the path as we spell it, or say why it cannot be."""
        path = self._path(finding.file)
        if path is None:
            return _rejected(finding, "this file was not shown")
        if finding.end_line < finding.line:
            return _rejected(finding, f"it ends at line {finding.end_line}, before it begins at line {finding.line}")
        ranges = _ranges(self._pieces[path])
        if not any(first <= finding.line and finding.end_line <= last for first, last in ranges):
            shown = ", ".join(f"{first} to {last}" for first, last in ranges)
            return _rejected(finding, f"{_lines(finding)} not shown; lines {shown} were")
        return replace(finding, file=path)

    def _path(self, said: str) -> str | None:
        """Find the file that is meant: ./a is a, and letters may be composed otherwise; nothing else is guessed."""
        for path in (said, said.removeprefix("./")):
            if path in self._pieces:
                return path
        alike = self._composed.get(_composed(said.removeprefix("./")), [])
        return alike[0] if len(alike) == 1 else None


def _composed(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _ranges(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Join pieces of a file that touch or overlap."""
    ordered = sorted((piece.first, piece.last) for piece in pieces)
    starts = [0, *(index for index, (one, other) in enumerate(pairwise(ordered), 1) if other[0] > one[1] + 1)]
    ends = [*starts[1:], len(ordered)]
    return [(ordered[a][0], max(last for _, last in ordered[a:b])) for a, b in zip(starts, ends, strict=True)]


def _lines(finding: Finding) -> str:
    if finding.line == finding.end_line:
        return f"line {finding.line} was"
    return f"lines {finding.line} to {finding.end_line} were"


def _rejected(finding: Finding, why: str) -> Rejected:
    return Rejected(finding=replace(finding, file=bounded(finding.file, MAX_PATH)), why=why)


UNPARSED = "unparsed"
MAX_FAILURE = 2_000  # characters


_NOTHING = FindingsReading()
_CODES: dict[Quality, str] = {quality: str(quality) for quality in Quality if quality is not Quality.GOOD}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What came of one call: a reply that was read, or what took its place."""

    reply: Reply | None = None
    reading: FindingsReading = _NOTHING
    failure: str = ""
    code: str = ""

    @property
    def is_lost(self) -> bool:
        """Return whether there is nothing that could be repaired; an answer in no shape can be, like any other."""
        return bool(self.failure) and self.code != UNPARSED


async def examine(
    ctx: Context,
    verifier: Verifier,
    chunk: Chunk,
    *,
    key: str,
    dispatch: str | None = None,
    cache: str | None = None,
    shared: bool = True,
) -> Examined:
    """Ask a verifier about a chunk; its failure is a value, what stops the run passes through."""
    request = pose(verifier, chunk, cache=cache, shared=shared)
    heard = [await _hear(ctx, verifier, chunk, request, key, dispatch)]
    keys: tuple[str, ...] = (key,)
    if heard[0].failure and not heard[0].is_lost:
        said = "" if heard[0].reply is None else heard[0].reply.text
        again = pose_again(request, said, heard[0].reading.flaw or heard[0].failure)
        keys = (key, f"{key}/repair")
        heard.append(await _hear(ctx, verifier, chunk, again, keys[-1], dispatch))
    return _examined(verifier, chunk, heard, keys)


async def _hear(
    ctx: Context, verifier: Verifier, chunk: Chunk, request: Request, key: str, dispatch: str | None
) -> _Heard:
    try:
        reply = await ctx.call(verifier.model, request, key=key, dispatch=dispatch)
    except ReplayMiss as error:
        return _Heard(failure=error.message, code=error.code)
    except FAILED_CALL as error:
        code = code_of(error)
        return _Heard(failure=words_of(error), code=UNPARSED if code == BadOutput.code else code)
    reading = read(reply, verifier, chunk)
    if not reading.flaw:
        return _Heard(reply=reply, reading=reading)
    return _Heard(reply=reply, reading=reading, failure=f"the reply cannot be used: {reading.flaw}", code=UNPARSED)


def _examined(verifier: Verifier, chunk: Chunk, heard: Sequence[_Heard], keys: tuple[str, ...]) -> Examined:
    last, replies = heard[-1], [one.reply for one in heard if one.reply is not None]
    return Examined(
        findings=last.reading.findings,
        rejected=last.reading.rejected,
        score=last.reading.score,
        parts=last.reading.parts,
        coverage=last.reading.coverage,
        failure=_failure(heard),
        code=_code(last),
        repaired=len(heard) > 1 and not last.failure,
        lines=chunk.lines,
        model=replies[-1].model if replies else verifier.model,
        seconds=sum(reply.timings.shown for reply in replies),
        cost=sum((reply.cost for reply in replies), NOTHING),
        keys=keys,
    )


def _failure(heard: Sequence[_Heard]) -> str:
    last = heard[-1]
    if not last.failure:
        return ""
    if len(heard) == 1:
        return bounded(last.failure, MAX_FAILURE)
    if last.is_lost:
        return bounded(f"{heard[0].failure}; and its repair failed: {last.failure}", MAX_FAILURE)
    return bounded(f"after a repair too, {last.failure}", MAX_FAILURE)


def _code(last: _Heard) -> str:
    """Name a failure; of a reply that came and was cut, refused or empty, say that."""
    if last.code != UNPARSED or last.reply is None:
        return last.code
    return _CODES.get(last.reply.quality, UNPARSED)
