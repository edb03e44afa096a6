"""A member of the exec protocol: proposes its answer, and favours candidates that hold a word. For tests."""

from __future__ import annotations

import json
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # hundreds of these are started, and to load it takes longer than to answer
    from typing import Any


def main() -> None:
    """Answer one context as the arguments say: BEHAVIOUR ANSWER WORD."""
    behaviour, answer, word = sys.argv[1:4]
    envelope = json.load(sys.stdin)
    phase, context = envelope["phase"], envelope["context"]
    time.sleep({"late": 60, "slow": 1, "tired": 60 * (context["round_number"] > 1)}.get(behaviour, 0))
    if behaviour == "fails" or (behaviour == "proposes" and phase == "evaluate"):
        sys.exit("out of order")
    if behaviour == "leaves" and context["round_number"] > 1:
        sys.exit("it has left")
    if behaviour == "garbage" or (behaviour == "once" and "repair" not in context):
        print("I would rather not say {")
        return
    said = _propose(context, behaviour, answer) if phase == "propose" else _evaluate(context, behaviour, word)
    print(json.dumps(said | ({"cost_usd": 0.01} if behaviour == "paid" else {})))


def _propose(context: dict[str, Any], behaviour: str, answer: str) -> dict[str, Any]:
    if behaviour == "silent":
        return {"skipped": True, "reason": "I know nothing of this"}
    heard = " ".join(context["user_injections"])
    said = {"thought_process": "", "content": f"{answer} {heard}".strip(), "claims": [f"{answer} is right"]}
    return said | {"final_scratchpad": f"round {context['round_number']}"}


def _evaluate(context: dict[str, Any], behaviour: str, word: str) -> dict[str, Any]:
    if behaviour in ("silent", "shy"):
        return {"skipped": True, "reason": "I know nothing of this"}
    if behaviour == "neutral":
        return {"evaluations": [{"target_id": one["id"], "score": 0.5} for one in context["candidates"]]}
    said = [_weigh(place, one, behaviour, word) for place, one in enumerate(context["candidates"])]
    return {"evaluations": _spoiled(said, behaviour, context["agent_id"])}


def _spoiled(said: list[dict[str, Any]], behaviour: str, own: str) -> list[dict[str, Any]]:
    """Return evaluations with one vote beside or among them that cannot count."""
    first, *rest = said
    more = {
        "selfish": [*said, {"target_id": own, "score": 1.0}],
        "lost": [*said, {"target_id": "nobody", "score": 1.0}],
        "twice": [*said, {**first, "score": 0.9}],
        "loud": [{**first, "score": 7}, *rest],
        "alone": [{"target_id": own, "score": 1.0}],
    }
    return more.get(behaviour, said)


def _weigh(place: int, candidate: dict[str, Any], behaviour: str, word: str) -> dict[str, Any]:
    is_good = place == 0 if behaviour == "first" else word in candidate["proposal"]["content"]
    score = 1.0 if behaviour == "generous" or is_good else 0.1
    assessed = [] if is_good else [{"claim": 1, "stance": "contested", "reason": "I counted"}]
    why = "right" if is_good else f"it does not say {word}"
    return {"target_id": candidate["id"], "score": score, "justification": why, "claim_assessments": assessed}


if __name__ == "__main__":
    main()
