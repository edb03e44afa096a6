"""Members of a judging council that say nothing: no form of it lets the verdict of one member decide a case."""

import json
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.values import CouncilPhase
from muster.domain.canonical import Json, digest
from muster.domain.case import Status
from muster.domain.run import Run, RunState
from muster.suites.journal import case_key
from tests.suites.councils import MEMBERS, write_council
from tests.suites.evidence.scene import KEY
from tests.suites.stage import MODEL, Stage, a_case, a_judged_case, a_suite, a_verdict, playing, stage

KIND, *STRICT = MEMBERS  # one member thinks that the answer passes, the others that it fails
DECIDER = STRICT[0]  # and this one weighs the kind verdict highest
SILENT = (KIND, STRICT[1])

Labels = Sequence[str]
Answer = str | dict[str, Any]


def evaluations(*items: Mapping[str, Any]) -> str:
    return json.dumps({"evaluations": items})


def weighed(labels: Labels, weight: Json) -> str:
    return evaluations(*({"candidate": label, "weight": weight, "critique": "", "claims": []} for label in labels))


# What the two others say when they are asked to evaluate, by the labels that they are shown.
SAYS_NOTHING: dict[str, Callable[[Labels], Answer]] = {
    "abstain": lambda labels: json.dumps({"skipped": True, "reason": "no opinion"}),
    "weigh everything 0": lambda labels: weighed(labels, 0),
    "abstain from each candidate": lambda labels: evaluations(*({"candidate": one, "skipped": True} for one in labels)),
    "weigh both alike": lambda labels: weighed(labels, 10),
    "weigh both next to nothing": lambda labels: weighed(labels, 1e-300),
    "are against both": lambda labels: weighed(labels, -10),
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


async def held(s: Stage, judge: str, **more: Any) -> Run:
    spec = {"path": [str(s.folder / "cases.yaml")], "agents": [MODEL], "judge": judge, **more}
    return await (await s.muster.start("suite", spec)).wait()


async def archive_of(s: Stage, run: Run) -> Path:
    """Write the evidence of a run."""
    key = s.folder / "signing.key"
    key.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    key.chmod(0o600)
    return (await s.muster.suites.export_evidence(run.id, s.folder / "evidence.tar", key)).path


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
        for form in ("abstain", "weigh everything 0", "are against both"):
            assert "1 evaluation counts, and 2 are needed" in found[form].why
        assert "too few evaluations prefer one of the verdicts, which differ" in found["weigh both alike"].why


def against(labels: Mapping[str, str]) -> str:
    return weighed(list(labels.values()), -50)


async def test_a_council_whose_last_round_rejects_every_verdict_judges_nothing(tmp_path: Path) -> None:
    judge = write_council(tmp_path, "min_rounds: 2", rounds=2)
    case, words = "s/one", "hello there"
    rules = proposing(dict.fromkeys(MEMBERS, 1.0))
    for member in MEMBERS:
        first, second = (shown(judge, case, member, number) for number in (1, 2))
        rules.append(rule(member, evaluating(words, 1), favouring(first, MEMBERS[:2])))
        rules.append(rule(member, evaluating(words, 2), against(second)))
    async with stage(tmp_path, judge=playing(*reversed(rules))) as s:
        a_suite(tmp_path, a_judged_case("one", words))
        run = await held(s, judge)
        (result,) = await s.results(run)
        assert result.status is Status.UNJUDGED
        (said,) = result.judgements
        why = "no verdict is supported: the best has -1.414"
        assert said.failures == (f"the council has no winning verdict: round 2, its last, has none ({why})",)
        assert (said.agreement, said.tie, said.votes) == (None, "", "")
        found = s.muster.project.evidence.rescore(await archive_of(s, run))
        assert (found.ok, found.same) == (True, 1), found
        (child,) = await s.muster._backend.store.archive.children(run.id)
        report = await s.muster.councils.trace_of(child)
        assert (
            f"won (in round 1; round 2, the last, has no winner: {why.replace('verdict', 'proposal')};"
            in report.verdict
        )


SKIPS, PROSE = json.dumps({"skipped": True, "reason": "no opinion"}), "Both verdicts seem fine to me."
# What so many members say in a second round, in which phase, and what the judgement says of it.
BROKEN_ROUNDS: dict[str, tuple[str, int, str, str]] = {
    "c0": ("evaluate", 3, PROSE, "round 2, phase evaluate: 0 of 3 members answered, and 2 are needed"),
    "c1": ("evaluate", 2, PROSE, "round 2, phase evaluate: 1 of 3 members answered, and 2 are needed"),
    "c2": ("propose", 3, SKIPS, "round 2, phase propose: there are 0 proposals, and 2 are needed"),
    "c3": ("propose", 3, PROSE, "round 2, phase propose: 0 of 3 members answered, and 2 are needed"),
}


def saying(words: str, phase: str, number: int) -> str:
    """Return the pattern of the prompt of a phase about an answer."""
    return rf"(?s)\n{words}\n<<<END.*# Round {number} of at most \d+: {phase}"


async def test_a_council_that_could_not_hold_its_last_round_judges_nothing(tmp_path: Path) -> None:
    judge = write_council(tmp_path, "min_rounds: 2", rounds=2)
    rules = proposing(dict.fromkeys(MEMBERS, 1.0))
    for case, (phase, number, answer, _) in BROKEN_ROUNDS.items():
        for member in MEMBERS:
            labels = (shown(judge, f"s/{case}", member, one) for one in (1, 2))
            rules += [rule(member, evaluating(f"words {case}", one), favouring(found, MEMBERS[:2]))
                      for one, found in enumerate(labels, 1)]  # fmt: skip
        rules += [rule(member, saying(f"words {case}", phase, 2), answer) for member in MEMBERS[:number]]
    async with stage(tmp_path, judge=playing(*reversed(rules))) as s:
        a_suite(tmp_path, *(a_judged_case(case, f"words {case}") for case in BROKEN_ROUNDS))
        run = await held(s, judge)
        results = {result.case.removeprefix("s/"): result for result in await s.results(run)}
        assert {case: one.status for case, one in results.items()} == dict.fromkeys(BROKEN_ROUNDS, Status.UNJUDGED)
        for case, (*_, why) in BROKEN_ROUNDS.items():
            (failure,) = results[case].judgements[0].failures
            assert failure.startswith(
                f"the council has no winning verdict: round 2, its last, is not complete ({why}; {MEMBERS[0]}: "
            )
        found = s.muster.project.evidence.rescore(await archive_of(s, run))
        assert (found.ok, found.same) == (True, len(BROKEN_ROUNDS)), found


async def test_a_judgement_names_how_few_evaluations_it_has(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    case, words = "s/one", "hello there"
    rules = [
        *proposing(OWN),
        *(rule(one, evaluating(words), favouring(shown(judge, case, one), [KIND])) for one in STRICT),
        rule(KIND, evaluating(words), json.dumps({"skipped": True, "reason": "I know nothing of this"})),
    ]
    async with stage(tmp_path, judge=playing(*reversed(rules))) as s:
        a_suite(tmp_path, a_judged_case("one", words))
        run = await held(s, judge)
        (result,) = await s.results(run)
        assert result.status is Status.PASSED
        assert result.judgements[0].votes == "decided by 2 of 3 evaluations"
        report = await s.muster.suites.whole_report(run)
        for name in ("json", "markdown", "html"):
            out = StringIO()
            await report.write(name, out)
            assert "decided by 2 of 3 evaluations" in out.getvalue(), name


RUBRIC = [{"id": "kind", "description": "Is kind", "critical": True}, {"id": "brief", "description": "Is brief"}]


def verdict(*items: tuple[str, float, str]) -> str:
    made = [{"id": id_, "score": score, "evidence": quoted, "rationale": "so"} for id_, score, quoted in items]
    return json.dumps({"text": json.dumps({"items": made}), "claims": [], "final_scratchpad": ""})


def critical_case() -> dict[str, Any]:
    config = {"evaluator": "judge"}
    return a_case("one", "hello there", expected={"rubric": RUBRIC}, evaluator_config=config)


async def test_critical_items_count_in_the_verdicts_of_members_and_in_their_agreement(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    scores = dict(zip(MEMBERS, ((1.0, 1.0), (0.2, 1.0), (1.0, 0.4)), strict=True))
    rules = []
    for member, (kind, brief) in scores.items():
        liked = favouring(shown(judge, "s/one", member), [MEMBERS[0]])
        rules.append(rule(member, evaluating("hello there"), liked))
        rules.append(rule(member, ": propose", verdict(("kind", kind, ""), ("brief", brief, ""))))
    async with stage(tmp_path, judge=playing(*rules)) as s:
        a_suite(tmp_path, critical_case())
        run = await held(s, judge, threshold=0.5)
        (result,) = await s.results(run)
        (said,) = result.judgements
        assert [(one.score, one.passed) for one in said.members] == [(1.0, True), (0.6, False), (0.7, True)]
        assert said.agreement == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("bad", "flaw"),
    [
        (
            verdict(("kind", 1, "good bye"), ("brief", 1, "")),
            "the evidence for these items does not stand in any answer: kind",
        ),
        (
            verdict(("kind", 1, ""), ("kind", 1, "")),
            "these items of the rubric are missing: brief; these items are there more than once: kind",
        ),
    ],
)
async def test_a_verdict_of_a_member_is_repaired_once_as_that_of_one_judge_is(
    tmp_path: Path, bad: str, flaw: str
) -> None:
    judge = write_council(tmp_path)
    good = verdict(("kind", 1, "hello there"), ("brief", 1, ""))
    rules = [rule(MEMBERS[0], "Your reply cannot be used", good), rule(MEMBERS[0], ": propose", bad)]
    for member in MEMBERS:
        liked = favouring(shown(judge, "s/one", member), [MEMBERS[0]])
        rules.append(rule(member, evaluating("hello there"), liked))
        rules.append(rule(member, ": propose", good))
    async with stage(tmp_path, judge=playing(*rules)) as s:
        a_suite(tmp_path, critical_case())
        run = await held(s, judge)
        (result,) = await s.results(run)
        assert (result.status, result.items[0].quoted) == (Status.PASSED, True)
        (child,) = await s.muster._backend.store.archive.children(run.id)
        entry = await s.muster._backend.store.journal.find(child.id, f"round/01/propose/{MEMBERS[0]}/repair")
        assert entry is not None
        assert flaw in str(entry.request)
        found = s.muster.project.evidence.rescore(await archive_of(s, run))
        assert (found.ok, found.same) == (True, 1), found


async def test_a_quotation_that_is_still_false_after_its_repair_is_kept_with_its_mark(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    bad = verdict(("kind", 1, "good bye"), ("brief", 1, ""))
    rules = []
    for member in MEMBERS:
        liked = favouring(shown(judge, "s/one", member), [MEMBERS[0]])
        rules.append(rule(member, evaluating("hello there"), liked))
    async with stage(tmp_path, judge=playing(*rules, {"answer": bad})) as s:
        a_suite(tmp_path, critical_case())
        (result,) = await s.results(await held(s, judge))
        assert (result.status, result.items[0].quoted) == (Status.PASSED, False)
        assert s.judge.audit.calls == 3 * len(MEMBERS)
