"""A council of three models that judges: its policy, and what its members say about each answer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.values import CouncilPhase
from muster.domain.canonical import Json, digest
from muster.suites.journal import case_key
from tests.suites.stage import MODEL, a_verdict

MEMBERS = ("openai/gpt-5", "openai/gpt-5-mini", "openai/gpt-5-nano")


def write_council(
    folder: Path, *lines: str, name: str = "council.yaml", members: Sequence[str] = MEMBERS, rounds: int = 1
) -> str:
    """Write the policy of a council; returns the name of the judge that it is."""
    agents = [f"  - {{ agent: {member} }}" for member in members]
    text = "\n".join(["agents:", *agents, f"rounds: {rounds}", *lines])
    (folder / name).write_text(text + "\n", encoding="utf-8")
    return f"council:{folder / name}"


def spoken(
    judge: str,
    said: Mapping[str, str],
    verdicts: Mapping[str, str | float],
    *,
    winner: str = MEMBERS[0],
    agent: str = MODEL,
    shown_to: Sequence[str] = (),
    favoured: Sequence[str] = (),
) -> list[Mapping[str, Any]]:
    """Return what the members answer: each its own verdict, and all favour that of the winner, or those `favoured`.

    `said` has the words by which a case is known in a question, `verdicts` a score or the text of a verdict by member.
    Those who evaluate are the same, or else `shown_to`.
    """
    made: list[Mapping[str, Any]] = []
    for case, words in said.items():
        seed = int(digest(f"{case_key(case, agent, 1)}/judge/{judge}/1")[:7], 16)
        liked = favoured or (winner,)
        made += [_evaluation(member, tuple(verdicts), seed, words, liked) for member in shown_to or verdicts]
    made += [_proposal(member, verdict) for member, verdict in verdicts.items()]
    return made


def _evaluation(member: str, members: Sequence[str], seed: int, words: str, liked: Sequence[str]) -> Mapping[str, Any]:
    labels = labels_for(member, members, round_number=1, phase=CouncilPhase.EVALUATE, seed=seed)
    items: list[Json] = [
        {"candidate": label, "weight": 80 if author in liked else -20, "critique": "so it is", "claims": []}
        for label, author in labels.shown
    ]
    return {
        "model": member.partition("/")[2],
        "text": f"(?s)\n{words}\n<<<END.*: evaluate",
        "answer": json.dumps({"evaluations": items}),
    }


def _proposal(member: str, verdict: str | float) -> Mapping[str, Any]:
    text = verdict if isinstance(verdict, str) else a_verdict(verdict)
    answer = json.dumps({"text": text, "claims": [], "final_scratchpad": ""})
    return {"model": member.partition("/")[2], "text": ": propose", "answer": answer}
