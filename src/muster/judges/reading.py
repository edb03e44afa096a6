"""What a judge's reply says, if it can be used: every item once, scores in range, evidence that was really said."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.judges.question import SCHEMA, Question
from muster.shapes.json_limits import flaw_of
from muster.shapes.schema import flaw as schema_flaw
from muster.shapes.strict_json import read_object

_QUOTES = "\"'“”‘’«»"
_SHOWN = 60  # characters of an id that the judge made up
_BAD = {
    Quality.CUT: "it was cut off before its end; be brief",
    Quality.REFUSED: "it is a refusal",
    Quality.EMPTY: "it is empty",
    Quality.UNFINISHED: "it does not say that it came to its end, so it may not be whole",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge said about one item."""

    id: str
    score: float
    evidence: str
    rationale: str
    quoted: bool | None  # None: no evidence was given


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of a reply; with a flaw it is to be repaired, and without verdicts it cannot be used at all."""

    verdicts: tuple[Verdict, ...] = ()  # in the order of the rubric
    flaw: str = ""


def read(reply: Reply, question: Question) -> Reading:
    """Read a reply."""
    if reply.quality in _BAD:
        return Reading(flaw=f"{_BAD[reply.quality]}.")
    if question.fence.token in reply.text:
        return Reading(flaw="it repeats the fence of the data; give only the JSON object.")
    found = _verdict_in(reply)
    if isinstance(found, str):
        return Reading(flaw=found)
    items: list[Mapping[str, Json]] = found["items"]
    flaw = _ids_flaw(items, question) or _scores_flaw(items)
    return Reading(flaw=flaw) if flaw else _judged(items, question)


def _verdict_in(reply: Reply) -> dict[str, Json] | str:
    """Give the object that the reply is, or say why it is none.

    It is never searched for: JSON that stands in prose may be what the agent wrote, and the judge only quotes it.
    """
    if "{" not in reply.text and reply.data is not None:
        found: Json = reply.data  # an agent that gives data beside its text
    else:
        found = read_object(reply.text)
    if isinstance(found, str):
        return f"{found}."
    return _fitting(found) if _is_verdict(found) else 'it is no JSON object with the key "items".'


def _is_verdict(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("items"), list)


def _fitting(found: dict[str, Json]) -> dict[str, Json] | str:
    wrong = flaw_of(found) or schema_flaw(found, SCHEMA)
    return f"the JSON does not fit: {wrong}." if wrong else found


def _ids_flaw(items: list[Mapping[str, Json]], question: Question) -> str:
    counted = Counter(str(item["id"]) for item in items)
    wanted = [item.id for item in question.rubric]
    problems = (
        ("these items of the rubric are missing", [id_ for id_ in wanted if id_ not in counted]),
        ("there are no such items in the rubric", [repr(id_[:_SHOWN]) for id_ in counted if id_ not in wanted]),
        ("these items are there more than once", [id_ for id_ in wanted if counted[id_] > 1]),
    )
    return "; ".join(f"{problem}: {', '.join(ids)}" for problem, ids in problems if ids)


def _scores_flaw(items: list[Mapping[str, Json]]) -> str:
    wrong = [f"{item['id']} has {item['score']}" for item in items if not 0 <= item["score"] <= 1]
    return f"scores must be from 0 to 1: {', '.join(wrong)}" if wrong else ""


def _judged(items: list[Mapping[str, Json]], question: Question) -> Reading:
    said = {item["id"]: item for item in items}
    answers = [_plain(answer) for answer in question.answers]
    verdicts = tuple(_verdict(said[item.id], answers) for item in question.rubric)
    loose = [verdict.id for verdict in verdicts if verdict.quoted is False]
    if not loose:
        return Reading(verdicts=verdicts)
    flaw = (
        f"the evidence for these items does not stand in any answer: {', '.join(loose)}. Copy it word by word from an "
        "answer of the agent's, without leaving anything out, or let it be empty."
    )
    return Reading(verdicts=verdicts, flaw=flaw)


def _verdict(item: Mapping[str, Json], answers: list[str]) -> Verdict:
    evidence = str(item["evidence"]).strip()
    return Verdict(
        id=str(item["id"]),
        score=float(item["score"]),
        evidence=evidence,
        rationale=str(item["rationale"]).strip(),
        quoted=_stands(evidence, answers) if evidence else None,
    )


def _stands(evidence: str, answers: list[str]) -> bool:
    """Whether a passage was really said; judges like to put quotation marks around what they quote."""
    passage = _plain(evidence)
    bare = passage.strip(_QUOTES).strip()
    return any(passage in answer or (bare and bare in answer) for answer in answers)


def _plain(text: str) -> str:
    return " ".join(text.split())
