"""What a program of the exec protocol answers: a proposal or evaluations, its own or in the envelope of a provider."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.agents.amounts import microdollars_of
from muster.agents.program import shapes
from muster.agents.program.answer import Answer
from muster.agents.program.envelope import EVALUATE, PROPOSE
from muster.agents.program.markers import find_marked
from muster.agents.program.provider import ProviderEnvelope, is_envelope, read_envelope
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars
from muster.shapes.json_search import Fits, parseable, readable

_SHOWN = 200
Context = Mapping[str, Json]
Data = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """How the answers of one phase look."""

    noun: str
    example: str
    is_own: Fits
    read: Callable[[Mapping[str, Json], Context], Data]
    coerce: Callable[[str, Context], Data]
    text: Callable[[Data], str]


PHASES = {
    PROPOSE: Phase(
        noun="proposal",
        example='{"thought_process": "…", "content": "…"}',
        is_own=shapes.is_proposal,
        read=lambda value, _: shapes.read_proposal(value),
        coerce=lambda text, _: shapes.coerced_proposal(text),
        text=lambda data: str(data["content"]),
    ),
    EVALUATE: Phase(
        noun="evaluations",
        example='{"evaluations": [{"target_id": "…", "score": 0.5, "justification": "…"}]}',
        is_own=shapes.is_evaluations,
        read=lambda value, context: shapes.read_evaluations(value, shapes.candidates_of(context)),
        coerce=lambda text, context: shapes.coerced_evaluations(text, shapes.candidates_of(context)),
        text=lambda data: canonical(data).decode("utf-8", "surrogatepass"),
    ),
}


def decode(output: bytes, context: Context) -> Answer:
    """Read the answer to a context; raises BadOutput with what it cost, when that is said."""
    phase = PHASES[context["phase"]]
    try:
        found = find_marked(parseable(output), lambda value: phase.is_own(value) or is_envelope(value))
    except BadOutput as error:
        raise _failed(phase, error, output) from error
    if found is None:
        raise _failed(phase, BadOutput(f"there is no {phase.example} in it"), output)
    own = phase.is_own(found)
    provider = None if own else read_envelope(found)
    cost = microdollars_of(found.get("cost_usd")) if provider is None else provider.cost
    if provider is not None and provider.failed:
        raise BadOutput(f"its provider reported an error: {provider.words}", cost=cost)
    try:
        data = phase.read(found, context) if provider is None else _unwrapped(phase, provider, context)
    except BadOutput as error:
        raise _failed(phase, error, output, cost) from error
    return _answer(phase, data, cost, provider)


def last_words(output: bytes) -> tuple[str, Microdollars | None]:
    """Give what the envelope in the output of a program that failed says of itself and of its cost."""
    try:
        found = find_marked(parseable(output), lambda value: is_envelope(value) or "cost_usd" in value)
    except BadOutput:
        return "", None
    if found is None:
        return "", None
    if is_envelope(found):
        envelope = read_envelope(found)
        return envelope.words, envelope.cost
    return "", microdollars_of(found["cost_usd"])


def _unwrapped(phase: Phase, provider: ProviderEnvelope, context: Context) -> Data:
    result = provider.result
    if isinstance(result, str):
        inner = find_marked(result, phase.is_own)
        return phase.coerce(result, context) if inner is None else phase.read(inner, context)
    if isinstance(result, dict) and phase.is_own(result):
        return phase.read(result, context)
    raise BadOutput(f"the result in the envelope of its provider is neither text nor {phase.example}")


def _answer(phase: Phase, data: Data, cost: Microdollars | None, provider: ProviderEnvelope | None) -> Answer:
    if provider is None:
        return Answer(text=phase.text(data), data=data, cost=cost)
    return Answer(
        text=phase.text(data),
        data=data,
        cost=cost,
        usage=provider.usage,
        session=provider.session,
        turns=provider.turns,
    )


def _failed(phase: Phase, error: BadOutput, output: bytes, cost: Microdollars | None = None) -> BadOutput:
    begins = readable(output[: 4 * _SHOWN])[:_SHOWN].strip()
    return BadOutput(
        f"failed to parse {phase.noun}: {error.message}; its output begins: {begins}",
        cost=cost,
        suggestions=error.suggestions,
    )
