"""Members of a judging council that say nothing: no form of it lets the verdict of one member decide a case."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.councils.anonymity import labels_for
from muster.councils.values import CouncilPhase
from muster.domain.canonical import Json, digest
from muster.domain.run import Run, RunState
from muster.suites.journal import case_key
from muster.suites.verdict import Status
from tests.suites.councils import MEMBERS, write_council
from tests.suites.stage import MODEL, Stage, a_judged_case, a_suite, a_verdict, playing, stage

KIND, *STRICT = MEMBERS  # one member thinks that the answer passes, the others that it fails
DECIDER = STRICT[0]  # and this one weighs the kind verdict highest
SILENT = (KIND, STRICT[1])

Labels = Sequence[str]
Answer = str | dict[str, Any]


def evaluations(*items: Mapping[str, Json]) -> str:
    return json.dumps({"evaluations": items})


def weighed(labels: Labels, weight: Json) -> str:
    return evaluations(*({"candidate": label, "weight": weight, "critique": "", "claims": []} for label in labels))


# What the two others say when they are asked to evaluate, by the labels that they are shown.
SAYS_NOTHING: dict[str, Callable[[Labels], Answer]] = {
    "abstain": lambda labels: json.dumps({"skipped": True, "reason": "no opinion"}),
    "weigh everything 0": lambda labels: weighed(labels, 0),
    "abstain from each candidate": lambda labels: evaluations(*({"candidate": one, "skipped": True} for one in labels)),
    "weigh one 0 and abstain from the other": lambda labels: evaluations(
        {"candidate": labels[0], "weight": 0}, {"candidate": labels[1], "skipped": True}
    ),
    "give no weight": lambda labels: evaluations(*({"candidate": one} for one in labels)),
    "give weights out of range": lambda labels: weighed(labels, 1000),
    "weigh each candidate twice": lambda labels: weighed([*labels, *labels], 50),
    "weigh unknown candidates": lambda labels: weighed(["zzz", "yyy"], 50),
    "list no evaluation": lambda labels: evaluations(),
    "write prose": lambda labels: "Both verdicts seem fine to me.",
    "answer with blanks": lambda labels: " \n ",
    "refuse": lambda labels: {"text": "I cannot help with that.", "stop": "refused"},
    "are cut off": lambda labels: {"text": '{"evaluations": [{"candi', "stop": "max_tokens"},
}


def seed_of(judge: str, case: str) -> int:
    return int(digest(f"{case_key(case, MODEL, 1)}/judge/{judge}/1")[:7], 16)


def shown(judge: str, case: str, member: str, number: int = 1) -> Mapping[str, str]:
    """Return the labels that a member is shown when it evaluates, by the names of the authors."""
    seed = seed_of(judge, case)
    found = labels_for(member, MEMBERS, round_number=number, phase=CouncilPhase.EVALUATE, seed=seed).shown
    return {author: label for label, author in found}


def rule(member: str, pattern: str, answer: Answer) -> Mapping[str, Any]:
    return {"model": member.partition("/")[2], "text": pattern, "answer": answer}


def evaluating(words: str, number: int = 1) -> str:
    return rf"(?s)\n{words}\n<<<END.*# Round {number} of at most \d+: evaluate"


def favouring(labels: Mapping[str, str], liked: Sequence[str]) -> str:
    items: list[Mapping[str, Json]] = [
        {"candidate": label, "weight": 80 if author in liked else -20, "critique": "", "claims": []}
        for author, label in labels.items()
    ]
    return evaluations(*items)


def proposing(scores: Mapping[str, float]) -> list[Mapping[str, Any]]:
    return [
        rule(member, ": propose", json.dumps({"text": a_verdict(score), "claims": [], "final_scratchpad": ""}))
        for member, score in scores.items()
    ]


async def held(s: Stage, judge: str) -> Run:
    spec = {"path": [str(s.folder / "cases.yaml")], "agents": [MODEL], "judge": judge}
    return await (await s.muster.start("suite", spec)).wait()


OWN = {KIND: 1.0, **dict.fromkeys(STRICT, 0.0)}


async def test_a_case_does_not_pass_on_the_vote_of_one_member_however_the_others_say_nothing(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    words = {f"s/c{place}": (f"words {place} here", form) for place, form in enumerate(SAYS_NOTHING)}
    rules = proposing(OWN)
    for case, (said, form) in words.items():
        rules += [
            rule(DECIDER, evaluating(said), favouring(shown(judge, case, DECIDER), [KIND])),
            *(
                rule(member, evaluating(said), SAYS_NOTHING[form](list(shown(judge, case, member).values())))
                for member in SILENT
            ),
        ]
    async with stage(tmp_path, judge=playing(*reversed(rules), {"answer": "{}"})) as s:
        a_suite(tmp_path, *(a_judged_case(case.removeprefix("s/"), said) for case, (said, _) in words.items()))
        run = await held(s, judge)
        assert run.state is RunState.COMPLETED, run.error
        found = {words[result.case][1]: result for result in await s.results(run)}
        assert {form: result.status for form, result in found.items()} == dict.fromkeys(SAYS_NOTHING, Status.UNJUDGED)
        for form in ("abstain", "weigh everything 0"):
            assert "1 evaluation counts, and 2 are needed" in found[form].why
