"""Answers: what members reply, read strictly into values; what cannot be read is a reason, never a guess. Pure.

Programs of the exec protocol answer in its shapes, which the program agent has read and checked once; everybody else
answers in the shapes of the two schemas below.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.councils.members.person import person_evaluation, person_proposal
from muster.councils.order import ScoreScale
from muster.councils.rules.anonymity import CandidateLabels
from muster.councils.rules.scoring import SELF_VOTE, UNKNOWN_TARGET, WEIGHED_TWICE, weight_of
from muster.councils.rules.values import (
    MAX_SCRATCHPAD,
    MAX_WEIGHT,
    MIN_WEIGHT,
    AbstentionCause,
    ClaimAssessment,
    ClaimStance,
    CouncilAbstention,
    CouncilPhase,
    Evaluation,
    Proposal,
    RejectedVote,
    Vote,
)
from muster.domain.call import Quality, Reply, says_something
from muster.domain.canonical import Json
from muster.judging.verdicts import VerdictForm, ids_flaw, quotes_flaw
from muster.text.json_documents import flaw_of, read_object
from muster.text.schemas.json_schema import flaw as schema_flaw

_SKIPPED: dict[str, Json] = {"skipped": {"type": "boolean"}, "reason": {"type": "string"}}

# Nothing is required, since who abstains gives none of it; bounds are not in the schema, since providers refuse them
# in a response format. The readers below check both.
PROPOSAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "claims": {"type": "array", "items": {"type": "string"}},
        "final_scratchpad": {"type": "string"},
        **_SKIPPED,
    },
    "additionalProperties": False,
}

EVALUATION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "evaluations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "candidate": {"type": "string"},
                    "weight": {"type": "number"},
                    "critique": {"type": "string"},
                    "claims": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "claim": {"type": "integer"},
                                "stance": {"type": "string", "enum": [str(stance) for stance in ClaimStance]},
                                "reason": {"type": "string"},
                            },
                            "required": ["claim", "stance", "reason"],
                            "additionalProperties": False,
                        },
                    },
                    "skipped": {"type": "boolean"},
                },
                "required": ["candidate"],
                "additionalProperties": False,
            },
        },
        **_SKIPPED,
    },
    "additionalProperties": False,
}

MAX_CLAIMS = 50
_SHOWN = 60  # characters of what a member made up
_BAD = {
    Quality.CUT: "it was cut off before its end; be brief",
    Quality.REFUSED: "it is a refusal",
    Quality.EMPTY: "it is empty",
    Quality.UNFINISHED: "it does not say that it came to its end, so it may not be whole",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableAnswer:
    """Why an answer cannot be used, in words that help its author to repair it."""

    reason: str
    # What counts of it if it is not repaired: votes that nothing is wrong with, or a verdict with a false quotation.
    rest: Evaluation | Proposal | None = None


def read_proposal(
    reply: Reply,
    agent: str,
    *,
    person: bool = False,
    schema: Mapping[str, Json] | None = None,
    form: VerdictForm | None = None,
) -> Proposal | CouncilAbstention | UnreadableAnswer:
    """Read the answer of an agent that was asked to propose; all that a person writes is the proposal.

    With a schema the text of the proposal must be one JSON object that fits it, and with a form a verdict of that form.
    """
    found = person_proposal(reply.text) if person else _proposal_in(reply)
    if isinstance(found, str):
        return UnreadableAnswer(reason=found)
    text, claims, scratchpad = found.get("text", ""), found.get("claims", ()), found.get("final_scratchpad") or ""
    if found.get("skipped") is True:
        return _abstention(found, agent, CouncilPhase.PROPOSE, has_more=says_something(text))
    flaw = _proposal_flaw(text, claims, scratchpad) or ("" if schema is None else _text_flaw(text, schema))
    if flaw:
        return UnreadableAnswer(reason=flaw)
    made = Proposal(agent=agent, text=text, claims=tuple(claims), scratchpad=scratchpad, tokens=reply.usage.output)
    return made if form is None else _held_to(form, made)


def read_evaluation(
    reply: Reply, labels: CandidateLabels, proposals: Sequence[Proposal], scale: ScoreScale, *, person: bool = False
) -> Evaluation | CouncilAbstention | UnreadableAnswer:
    """Read the answer of the member that was shown candidates under these labels; labels are mapped back.

    Votes that cannot count are left out by name. Models and people may repair them first; a program would say the same.
    """
    data: Any = reply.data
    is_exec = isinstance(data, Mapping) and _is_exec(data)
    written = _fitting(person_evaluation(reply.text)) if person else _object_in(reply, EVALUATION_SCHEMA)
    found = data if is_exec else written
    if isinstance(found, str):
        return UnreadableAnswer(reason=found)
    items = found.get("evaluations", [])
    if found.get("skipped") is True:
        return _abstention(found, labels.viewer, CouncilPhase.EVALUATE, has_more=bool(items))
    claims = {labels.label_of(one.agent): one.claims for one in proposals if one.agent in labels.agents}
    read = [_exec_item(item, claims, scale) if is_exec else _model_item(item, claims) for item in items]
    told = tuple(_told_rejections(found, labels)) if is_exec else ()
    evaluation = replace(_evaluation(read, labels, told), coerced=is_exec and _is_coerced(found))
    if is_exec and evaluation.votes:
        return evaluation
    flaw = "; ".join(_flaws(read, labels))
    return UnreadableAnswer(reason=flaw, rest=evaluation if evaluation.votes else None) if flaw else evaluation


def settled(
    read: Proposal | Evaluation | CouncilAbstention | UnreadableAnswer,
) -> Proposal | Evaluation | CouncilAbstention | UnreadableAnswer:
    """Return what counts of an answer that nobody repairs any more."""
    return read.rest if isinstance(read, UnreadableAnswer) and read.rest is not None else read


def _fitting(written: Mapping[str, Json] | str) -> Mapping[str, Any] | str:
    """Return what a person wrote if it has the shape of the schema, which JSON of its own need not have."""
    wrong = "" if isinstance(written, str) else flaw_of(written) or schema_flaw(written, EVALUATION_SCHEMA)
    return f"the JSON does not fit: {wrong}" if wrong else written


def _proposal_in(reply: Reply) -> Mapping[str, Any] | str:
    """Return a proposal in the shape of the schema, or why there is none; programs say `content` for `text`."""
    data = reply.data
    if isinstance(data, Mapping) and _is_exec_proposal(data, reply.text):
        return {**data, "text": data["content"], "claims": _texts(data.get("claims"))}
    return _object_in(reply, PROPOSAL_SCHEMA)


def _is_exec_proposal(data: Mapping[str, Json], text: str) -> bool:
    """Return whether data are a proposal as the program agent has read it: then the text is its content.

    Structured output of a model has the whole object as its text, and is held against the schema whatever its keys.
    """
    return isinstance(data.get("thought_process"), str) and data.get("content") == text


def _object_in(reply: Reply, schema: Mapping[str, Json]) -> Mapping[str, Any] | str:
    """Return the object that a reply is, or why it is none; it is never searched for in other text."""
    if reply.quality in _BAD:
        return _BAD[reply.quality]
    found: Any = reply.data if "{" not in reply.text and reply.data is not None else read_object(reply.text)
    if isinstance(found, str):
        return found
    wrong = flaw_of(found) or schema_flaw(found, schema)
    return f"the JSON does not fit: {wrong}" if wrong else dict(found)


def _abstention(
    found: Mapping[str, Json], agent: str, phase: CouncilPhase, *, has_more: bool
) -> CouncilAbstention | UnreadableAnswer:
    if has_more:
        return UnreadableAnswer(reason='it says "skipped" and has an answer all the same')
    said = found.get("reason")
    reason = said if isinstance(said, str) else ""
    return CouncilAbstention(agent=agent, phase=phase, cause=AbstentionCause.SKIPPED, reason=reason)


def _proposal_flaw(text: str, claims: Sequence[str], scratchpad: Json) -> str:
    if not says_something(text):
        return 'it has no text; who abstains answers {"skipped": true, "reason": "…"}'
    if len(claims) > MAX_CLAIMS:
        return f"it has {len(claims)} claims; at most {MAX_CLAIMS} are read"
    if not isinstance(scratchpad, str):
        return "final_scratchpad is not a string"
    size = len(scratchpad.encode("utf-8", "surrogatepass"))
    return f"final_scratchpad has {size:,} bytes; at most {MAX_SCRATCHPAD:,} are kept" if size > MAX_SCRATCHPAD else ""


def _text_flaw(text: str, schema: Mapping[str, Json]) -> str:
    """Return why the text of a proposal is not the JSON that was asked for."""
    found = read_object(text)
    wrong = found if isinstance(found, str) else flaw_of(found) or schema_flaw(found, schema)
    return f"the text of the proposal cannot be used: {wrong}" if wrong else ""


def _held_to(form: VerdictForm, proposal: Proposal) -> Proposal | UnreadableAnswer:
    """Return a verdict, or what is wrong with it; one with a false quotation counts if it is not repaired."""
    found = read_object(proposal.text)
    items = found.get("items") if isinstance(found, Mapping) else None
    if not isinstance(items, list) or not all(_is_item(item) for item in items):
        return UnreadableAnswer(reason="the text of the proposal cannot be used: it has no items of a verdict")
    if wrong := ids_flaw((item["id"] for item in items), form):
        return UnreadableAnswer(reason=f"the text of the proposal cannot be used: {wrong}")
    loose = quotes_flaw(items, form)
    return UnreadableAnswer(reason=loose, rest=proposal) if loose else proposal


def _is_item(item: Json) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("id"), str) and isinstance(item.get("evidence"), str)


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts; in any other shape it is a field of the program's own, which means nothing here."""
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return tuple(value) if is_list else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One evaluation of one candidate, with what is wrong with it."""

    label: str
    weight: float | None = None
    critique: str = ""
    claims: tuple[ClaimAssessment, ...] = ()
    flaw: str = ""  # begins with a verb: "has no weight"


def _model_item(item: Mapping[str, Any], claims: Mapping[str, Sequence[str]]) -> _Item:
    label, weight = item["candidate"].strip(), item.get("weight")
    known, assessed = claims.get(label, ()), item.get("claims", ())
    wrong = [str(one["claim"]) for one in assessed if not 1 <= one["claim"] <= len(known)]
    if item.get("skipped") is True:
        return _Item(label=label, critique=item.get("critique", ""))
    if weight is None:
        return _Item(label=label, flaw="has no weight")
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        return _Item(label=label, flaw=f"has the weight {weight!r:.40}: it must be from -100 to 100")
    if wrong:
        return _Item(label=label, flaw=f"has no claim with the number {', '.join(wrong)}")
    return _Item(
        label=label,
        weight=float(weight),
        critique=item.get("critique", ""),
        claims=tuple(
            ClaimAssessment(claim=known[int(one["claim"]) - 1], stance=ClaimStance(one["stance"]), reason=one["reason"])
            for one in assessed
        ),
    )


def _exec_item(item: Mapping[str, Any], claims: Mapping[str, Sequence[str]], scale: ScoreScale) -> _Item:
    label, score, said = item["target_id"], item.get("score"), item.get("justification")
    critique = said if isinstance(said, str) else ""
    if item.get("skipped") is True and score is None:
        return _Item(label=label, critique=critique)
    if isinstance(score, bool) or not isinstance(score, int | float):
        return _Item(label=label, flaw="has no score: it must be a number")
    weight = weight_of(score, scale)
    if weight is None:
        return _Item(label=label, flaw=f"has the score {score!r:.40}: it must be from {scale.lowest} to 1")
    assessed = tuple(_assessments(item.get("claim_assessments"), claims.get(label, ())))
    return _Item(label=label, weight=weight, critique=critique, claims=assessed)


def _assessments(value: Json, known: Sequence[str]) -> Iterator[ClaimAssessment]:
    """Yield assessments in our shape; programs may have one of their own, which means nothing here."""
    for one in value if isinstance(value, list) else ():
        if not isinstance(one, Mapping) or one.get("stance") not in tuple(ClaimStance):
            continue
        claim = _known_claim(one.get("claim"), known)
        reason = one.get("reason")
        if claim:
            stance = ClaimStance(one["stance"])
            yield ClaimAssessment(claim=claim, stance=stance, reason=reason if isinstance(reason, str) else "")


def _known_claim(claim: Any, known: Sequence[str]) -> str:
    """Return the claim that is meant by its number or its words; words of an evaluator's own are a claim too."""
    if isinstance(claim, str):
        return claim.strip()
    is_number = isinstance(claim, int) and not isinstance(claim, bool)
    return known[claim - 1] if is_number and 1 <= claim <= len(known) else ""


def _flaws(items: Sequence[_Item], labels: CandidateLabels) -> Iterator[str]:
    """Yield what is wrong with the votes, in words that help their author to repair them."""
    if not items:
        yield 'it has no evaluations; who abstains answers {"skipped": true, "reason": "…"}'
    for label, count in Counter(one.label for one in items).items():
        if label not in labels.labels:
            yield f"there is no candidate {label[:_SHOWN]!r}; the candidates are {', '.join(labels.labels)}"
        elif count > 1:
            yield f"the candidate {label!r} is evaluated {count} times"
    yield from (f"{one.label[:_SHOWN]!r} {one.flaw}" for one in items if one.flaw)


def _evaluation(items: Sequence[_Item], labels: CandidateLabels, rejected: Sequence[RejectedVote]) -> Evaluation:
    """Return the votes that count, with those that do not beside them, each target once."""
    times = Counter(one.label for one in items)
    reasons = {one.label: reason for one in items if (reason := _reason(one, times[one.label], labels))}
    return Evaluation(
        agent=labels.viewer,
        votes=tuple(_vote(one, labels) for one in items if one.label not in reasons),
        rejected=(*rejected, *(_rejected(label, reason, labels) for label, reason in reasons.items())),
    )


def _reason(item: _Item, times: int, labels: CandidateLabels) -> str:
    """Return why a vote cannot count; empty when it can."""
    if item.label == labels.viewer:
        return SELF_VOTE
    if item.label not in labels.labels:
        return UNKNOWN_TARGET
    return WEIGHED_TWICE if times > 1 else item.flaw and f"it {item.flaw}"


def _rejected(label: str, reason: str, labels: CandidateLabels) -> RejectedVote:
    return RejectedVote(target=labels.agent_of(label) or label[:_SHOWN], reason=reason)


def _told_rejections(data: Mapping[str, Json], labels: CandidateLabels) -> Iterator[RejectedVote]:
    """Yield the votes that the program agent left out when it read the output."""
    listed = data.get("rejected")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("target_id"), str) and isinstance(one.get("reason"), str):
            yield _rejected(one["target_id"], one["reason"], labels)


def _vote(item: _Item, labels: CandidateLabels) -> Vote:
    agent = labels.agent_of(item.label)
    return Vote(target=agent or item.label, weight=item.weight, critique=item.critique, claims=item.claims)


def _is_exec(data: Mapping[str, Json]) -> bool:
    """Return whether data are evaluations as the exec protocol has them, or an abstention of it."""
    items = data.get("evaluations")
    return isinstance(items, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("target_id"), str) for item in items
    )


def _is_coerced(data: Mapping[str, Any]) -> bool:
    return data.get("coerced") is True or any(item.get("coerced") is True for item in data["evaluations"])
