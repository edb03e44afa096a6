"""A model that is asked about a chunk of code: once, and once more for a repair. One that fails is a value."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.checks.findings.wording import bounded
from muster.domain.call import Quality, Reply, Request
from muster.domain.errors import BadOutput, ReplayMiss
from muster.domain.finding import Examined
from muster.domain.money import NOTHING
from muster.domain.source import Chunk
from muster.domain.verification import Verifier
from muster.engine.context import Context
from muster.judges.failures import FAILED_CALL, code_of, words_of
from muster.judges.findings.failing import LONGEST_FAILURE, UNPARSED
from muster.judges.findings.question import pose, pose_again
from muster.judges.findings.reading import Reading, read

_NOTHING = Reading()
_CODES: dict[Quality, str] = {quality: str(quality) for quality in Quality if quality is not Quality.GOOD}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What came of one call: a reply that was read, or what took its place."""

    reply: Reply | None = None
    reading: Reading = _NOTHING
    failure: str = ""
    code: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether there is nothing that could be repaired; an answer in no shape can be, like any other."""
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
        return bounded(last.failure, LONGEST_FAILURE)
    if last.is_lost:
        return bounded(f"{heard[0].failure}; and its repair failed: {last.failure}", LONGEST_FAILURE)
    return bounded(f"after a repair too, {last.failure}", LONGEST_FAILURE)


def _code(last: _Heard) -> str:
    """Name a failure; of a reply that came and was cut, refused or empty, say that."""
    if last.code != UNPARSED or last.reply is None:
        return last.code
    return _CODES.get(last.reply.quality, UNPARSED)
