"""What a program of the exec protocol answers: a proposal or evaluations, its own or in the envelope of a provider."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from muster.agents.payload import count_of, microdollars_of
from muster.agents.program.answer import EVALUATE, PROPOSE, ProgramAnswer, counts, find_marked
from muster.agents.usage import OWN_LIMITS
from muster.domain.call import Usage
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars
from muster.text.json_documents import Fits, flaw_of, parseable, readable

_SHOWN = 500
_SIGNS = ("result", "is_error", "subtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEnvelope:
    """One envelope; what is said in a wrong way is taken as not said, since its spelling is not ours."""

    result: Json
    failed: bool
    words: str  # what it says of itself, shortened for a message
    cost: Microdollars | None
    usage: Usage
    session: str
    turns: int


def is_envelope(value: Mapping[str, Json]) -> bool:
    """Return whether an object is the envelope of a provider."""
    return value.get("type") == "result" and any(sign in value for sign in _SIGNS)


def read_envelope(value: Mapping[str, Json]) -> ProviderEnvelope:
    """Read an envelope."""
    session, failed = value.get("session_id"), value.get("is_error") is True
    cost = microdollars_of(value.get("total_cost_usd"))
    sure = not failed or value.get("subtype") in OWN_LIMITS  # else nothing was counted of what may have been paid
    return ProviderEnvelope(
        result=value.get("result"),
        failed=failed,
        words=_words(value),
        cost=cost if cost or sure else None,
        usage=counts(value.get("usage")),
        session=session if isinstance(session, str) else "",
        turns=count_of(value.get("num_turns")) or 0,
    )


def _words(value: Mapping[str, Json]) -> str:
    errors = value.get("errors")
    listed = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    said = (value.get("result"), "; ".join(listed), value.get("subtype"))
    words = [text.strip() for text in said if isinstance(text, str) and text.strip()]
    return words[0][:_SHOWN] if words else "no reason was given"


COERCED = "coerced"  # marks evaluations that nobody wrote: they must never count
SKIPPED = "skipped"  # an abstention: nothing is proposed, or nobody evaluated
REJECTED = "rejected"  # beside evaluations: the targets of those that were left out, each with the reason
SCORE_RANGE = "score_range"  # in a context: the scale on which the program scores, [0, 1] where nothing is said

_TARGETS = ("target_id", "agent_id", "candidate_id")
_TEXTS = ("thought_process", "content")
_BESIDE_SKIPPED = frozenset({SKIPPED, "reason", "justification", "cost_usd"})
_SHAPE_QUOTED = 60  # characters of a name
_NAMED = 10  # candidates, or evaluations that were left out, in a message


def is_proposal(value: Mapping[str, Json]) -> bool:
    """Return whether an object is a proposal, or an abstention."""
    return _abstains(value) or all(isinstance(value.get(name), str) for name in _TEXTS)


def is_evaluations(value: Mapping[str, Json]) -> bool:
    """Return whether an object is meant as evaluations, or an abstention; reading it reports what is wrong with it."""
    items = value.get("evaluations")
    return _abstains(value) or (isinstance(items, list) and all(isinstance(item, dict) for item in items))


def read_proposal(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a proposal as it is kept; an abstention has no content."""
    return _kept({**dict.fromkeys(_TEXTS, ""), **value} if _abstains(value) else dict(value))


def read_evaluations(value: Mapping[str, Any], context: Mapping[str, Json]) -> dict[str, Json]:
    """Return evaluations as they are kept: every target under one name and once, every score from the lowest to 1.

    Targets are held against the candidates, where there are any. One that is of the program's own proposal, unknown,
    there more than once or out of range is left out by name; raises BadOutput when none is left, or in no shape.
    """
    own = {name: said for name, said in value.items() if name != REJECTED}
    if _abstains(own):
        return _kept({**own, "evaluations": []})
    items = [_evaluation(item, place) for place, item in enumerate(value["evaluations"])]
    if not items:
        raise BadOutput('"evaluations" is empty; who abstains answers {"skipped": true}')
    if value.get(SKIPPED) is True:
        raise BadOutput('it says "skipped" and has evaluations all the same')
    reasons = dict(_rejections(items, context))
    left = [item for item in items if item["target_id"] not in reasons]
    if not left:
        named = [f"{target[:_SHAPE_QUOTED]!r}: {reason}" for target, reason in reasons.items()]
        raise BadOutput(f"no evaluation is left that counts: {'; '.join(named[:_NAMED])}")
    rejected = [{"target_id": target, "reason": reason} for target, reason in reasons.items()]
    return _kept({**own, "evaluations": left, **({REJECTED: rejected} if rejected else {})})


def coerced_proposal(text: str) -> dict[str, Json]:
    """Make a proposal of a text."""
    return {"thought_process": "(generated by exec provider)", "content": text.strip()}


def coerced_evaluations(text: str, candidates: Sequence[str], lowest: int) -> dict[str, Json]:
    """Make neutral evaluations of a text, marked as such one by one and as a whole."""
    if not candidates:
        raise BadOutput("its provider answered with a text, and the context names no candidates that it could be about")
    said: dict[str, Json] = {"score": (lowest + 1) / 2, "justification": text.strip(), COERCED: True}
    return {"evaluations": [{"target_id": target, **said} for target in candidates], COERCED: True}


def candidates_of(context: Mapping[str, Json]) -> list[str]:
    """Return the names of the candidates in a context."""
    candidates = context.get("candidates")
    listed = candidates if isinstance(candidates, list | tuple) else ()
    named = (item.get("id") for item in listed if isinstance(item, Mapping))
    return [name for name in named if isinstance(name, str)]


def lowest_score(context: Mapping[str, Json]) -> int:
    """Return the lowest score on the scale that a context declares: -1 for [-1, 1], else 0."""
    declared = context.get(SCORE_RANGE)
    return -1 if isinstance(declared, list | tuple) and list(declared) == [-1, 1] else 0


def _abstains(value: Mapping[str, Json]) -> bool:
    """Return whether an object says only that there is no answer: a log line may have the word too."""
    return value.get(SKIPPED) is True and value.keys() <= _BESIDE_SKIPPED


def _rejections(items: Sequence[Mapping[str, Any]], context: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the targets whose evaluations cannot count, each with the reason."""
    candidates, lowest, own = candidates_of(context), lowest_score(context), context.get("agent_id")
    named = ", ".join(one[:_SHAPE_QUOTED] for one in candidates[:_NAMED])
    times = Counter(item["target_id"] for item in items)
    for item in items:
        target, score = item["target_id"], item.get("score", lowest)
        if target == own:
            yield target, "agents do not weigh their own proposals"
        elif candidates and target not in candidates:
            yield target, f"it is an unknown target; the candidates are {named}"
        elif times[target] > 1:
            yield target, f"it is evaluated {times[target]} times"
        elif not lowest <= score <= 1:
            yield target, f"it has the score {score!r:.40}: it must be from {lowest} to 1"


def _evaluation(item: Mapping[str, Json], place: int) -> dict[str, Json]:
    where = f"evaluations[{place}]"
    name = next((name for name in _TARGETS if name in item), None)
    target = None if name is None else item[name]
    if not isinstance(target, str) or not target:
        raise BadOutput(f"{where} names no target: target_id must be a string")
    if item.get(SKIPPED) is not True or "score" in item:
        _require_score(item.get("score"), where)
    if not isinstance(item.get("justification"), str | None):
        raise BadOutput(f"{where} has a justification that is no string")
    rest = {key: value for key, value in item.items() if key != name and (key, value) != ("justification", None)}
    return {"target_id": target, **rest}


def _require_score(value: Json, where: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not isfinite(value)):
        raise BadOutput(f"{where} has no score: it must be a finite number")


def _kept(data: dict[str, Json]) -> dict[str, Json]:
    flaw = flaw_of(data)
    if flaw is not None:
        raise BadOutput(flaw)
    return data


_OUTPUT_QUOTED = 200
Context = Mapping[str, Any]
Data = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPhase:
    """How the answers of one phase look."""

    noun: str
    example: str
    is_own: Fits
    read: Callable[[Mapping[str, Json], Context], Data]
    coerce: Callable[[str, Context], Data]
    text: Callable[[Data], str]


PHASES = {
    PROPOSE: ExecPhase(
        noun="proposal",
        example='{"thought_process": "…", "content": "…"}',
        is_own=is_proposal,
        read=lambda value, _: read_proposal(value),
        coerce=lambda text, _: coerced_proposal(text),
        text=lambda data: str(data["content"]),
    ),
    EVALUATE: ExecPhase(
        noun="list of evaluations",
        example='{"evaluations": [{"target_id": "…", "score": 0.5, "justification": "…"}]}',
        is_own=is_evaluations,
        read=read_evaluations,
        coerce=lambda text, context: coerced_evaluations(text, candidates_of(context), lowest_score(context)),
        text=lambda data: canonical(data).decode("utf-8", "surrogatepass"),
    ),
}


def decode(output: bytes, context: Context) -> ProgramAnswer:
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


def failure_of(output: bytes) -> tuple[str, Microdollars | None]:
    """Return what the envelope in the output of a program that failed says of itself and of its cost."""
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


def _unwrapped(phase: ExecPhase, provider: ProviderEnvelope, context: Context) -> Data:
    result = provider.result
    if isinstance(result, str):
        inner = find_marked(result, phase.is_own)
        return phase.coerce(result, context) if inner is None else phase.read(inner, context)
    if isinstance(result, dict) and phase.is_own(result):
        return phase.read(result, context)
    raise BadOutput(f"the result in the envelope of its provider is neither text nor {phase.example}")


def _answer(
    phase: ExecPhase, data: Data, cost: Microdollars | None, provider: ProviderEnvelope | None
) -> ProgramAnswer:
    if provider is None:
        return ProgramAnswer(text=phase.text(data), data=data, cost=cost)
    return ProgramAnswer(
        text=phase.text(data),
        data=data,
        cost=cost,
        usage=provider.usage,
        session=provider.session,
        turns=provider.turns,
    )


def _failed(phase: ExecPhase, error: BadOutput, output: bytes, cost: Microdollars | None = None) -> BadOutput:
    begins = readable(output[: 4 * _OUTPUT_QUOTED])[:_OUTPUT_QUOTED].strip()
    return BadOutput(
        f"the output is not a valid {phase.noun}: {error.message}; it begins: {begins}",
        cost=cost,
        suggestions=(*error.suggestions, 'for a program that writes plain text, set mode = "plain" in muster.toml'),
    )
