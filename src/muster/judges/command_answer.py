"""What a command that judges is told, and how its answer is read: scores for rubric items, or passed outright. Pure."""

import json
from collections import Counter
from collections.abc import Mapping

from muster.domain.call import Reply, Request, ask
from muster.domain.canonical import Json
from muster.domain.case import Case, RubricItem
from muster.domain.errors import BadOutput
from muster.domain.verdict import ItemScore, Judgement, Observation
from muster.judges.case_words import case_json, result_json
from muster.shapes.schema import fitting
from muster.shapes.strict_json import read_object

VERSION = "process/2"  # 1 searched the output for its answer
BY = "process"

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "rubric_id": {"type": "string"},
                    "score": {"type": "number", "minimum": 0, "maximum": 1},
                    "rationale": {"type": ["string", "null"]},
                },
                "required": ["rubric_id", "score"],
            },
        },
        "passed": {"type": ["boolean", "null"]},
    },
    "anyOf": [{"required": ["scores"]}, {"required": ["passed"]}],
}


def question_for(case: Case, observation: Observation) -> Request:
    """Put a case and its result into a request: one line of JSON on standard input."""
    told = json.dumps({"case": case_json(case), "result": result_json(observation)})
    request = ask(told)
    return Request(messages=request.messages, schema=SCHEMA)


def read_answer(case: Case, name: str, reply: Reply, key: str) -> Judgement:
    """Read the answer of a command; one that cannot be used is a failed judgement.

    Its whole output is the answer: JSON beside other words may be what it quotes.
    """
    found = read_object(reply.text, fenced=False)
    if isinstance(found, str):
        return failed(name, f"the standard output of the command is not one JSON document: {found}", key)
    try:
        data = fitting(found, SCHEMA)
    except BadOutput as error:
        return failed(name, error.message, key)
    scores: list[Mapping[str, Json]] = data.get("scores") or []
    passed: bool | None = data.get("passed")
    flaw = _flaw(case, [str(score["rubric_id"]) for score in scores], outright=passed is not None)
    if flaw:
        return failed(name, f"the answer of the command cannot be used: {flaw}", key)
    items = _items(case, scores)
    return Judgement(by=name, version=VERSION, items=items, passed=passed, cost=reply.cost, keys=(key,))


def failed(name: str, why: str, *keys: str) -> Judgement:
    """Give the judgement of a command that said nothing that counts."""
    return Judgement(by=name, version=VERSION, failures=(why,), keys=keys)


def _flaw(case: Case, scored: list[str], *, outright: bool) -> str:
    """Say what is wrong with the items that were scored; a case without a rubric leaves their names to the command."""
    wanted = [item.id for item in case.rubric]
    counted = Counter(scored)
    twice = [id_ for id_ in counted if counted[id_] > 1]
    unknown = [id_ for id_ in counted if wanted and id_ not in wanted]
    missing = [id_ for id_ in wanted if id_ not in counted and not outright]
    problems = (("scored twice", twice), ("not in the rubric", unknown), ("not scored", missing))
    found = [f"{problem}: {', '.join(ids)}" for problem, ids in problems if ids]
    if not scored and not outright:
        found.append('it has neither scores nor "passed"')
    return "; ".join(found)


def _items(case: Case, scores: list[Mapping[str, Json]]) -> tuple[ItemScore, ...]:
    said = {str(score["rubric_id"]): score for score in scores}
    known = [item for item in case.rubric if item.id in said]
    rubric = known if case.rubric else [RubricItem(id=id_, description="") for id_ in said]
    return tuple(
        ItemScore(
            id=item.id,
            weight=item.weight,
            critical=item.critical,
            score=float(said[item.id]["score"]),
            by=BY,
            rationale=str(said[item.id].get("rationale") or ""),
        )
        for item in rubric
    )
