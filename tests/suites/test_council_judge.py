"""A council as the judge of a suite: its winning verdict counts, its members are the variance, replays cost nothing."""

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from muster.app.base.costs import Quoting
from muster.app.suites.values import SuiteChoice
from muster.domain.case import Status
from muster.domain.errors import BadArgument, BadConfiguration, BadFile, MusterError, NotFound
from muster.domain.run import Run, RunState
from muster.sim.options import Options
from muster.suites.spec import SuiteSpec
from muster.suites.values.verdict import Judgement
from tests.suites.councils import MEMBERS, spoken, write_council
from tests.suites.evidence.scene import KEY
from tests.suites.evidence.test_rescoring import forged
from tests.suites.stage import (
    JUDGE,
    MODEL,
    NOWHERE,
    Stage,
    a_case,
    a_judged_case,
    a_suite,
    a_verdict,
    playing,
    stage,
    statuses,
)

SCORES = dict(zip(MEMBERS, (0.9, 0.8, 0.2), strict=True))
SAID = {"s/one": "hello", "s/two": "good day"}


def two_cases(folder: Path) -> None:
    a_suite(folder, *(a_judged_case(case.removeprefix("s/"), words) for case, words in SAID.items()))


def heard(judge: str, verdicts: Mapping[str, str | float] = SCORES, **more: Any) -> Options:
    """Set up a server that plays the members, and the single judge to whom the same suites are given."""
    return playing(*spoken(judge, SAID, verdicts, **more), {"model": "gpt-5-mini", "answer": a_verdict(0.4)})


async def held(s: Stage, judge: str, **more: Any) -> Run:
    """Run the suite of the folder with a judge, as a program would, to its end."""
    spec = {"path": [str(s.folder / "cases.yaml")], "agents": [MODEL], "judge": judge}
    options = {name: more.pop(name) for name in ("budget_usd", "dispatch") if name in more}
    return await (await s.muster.start("suite", spec | more, **options)).wait()


async def judgement(s: Stage, run: Run, case: str = "s/one") -> Judgement:
    found = {result.case: result for result in await s.results(run)}
    (said,) = found[case].judgements
    return said


async def test_the_winning_verdict_is_the_judgement_and_the_members_are_its_variance(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert statuses(await s.results(run)) == {"one": Status.PASSED, "two": Status.PASSED}
        assert {result.score for result in await s.results(run)} == {0.9}
        assert s.judge.audit.calls == 2 * 2 * len(MEMBERS)
        said = await judgement(s, run)
        assert (said.by, said.version, said.model) == (judge, "council/4", ", ".join(MEMBERS))
        assert [(one.member, one.score, one.passed, one.won) for one in said.members] == [
            (MEMBERS[0], 0.9, True, True),
            (MEMBERS[1], 0.8, True, False),
            (MEMBERS[2], 0.2, False, False),
        ]
        assert said.items[0].samples == (0.9, 0.8, 0.2)
        assert said.agreement == pytest.approx(1 / 3)
        assert said.spread == pytest.approx(0.7)
        results = await s.results(run)
        assert sum(result.cost + result.judge_cost for result in results) == run.total.settled
        children = await s.muster._backend.store.archive.children(run.id)
        assert [child.workload for child in children] == ["deliberation"] * 2


async def test_reports_tell_how_far_the_members_agree(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge, winner=MEMBERS[2])) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert statuses(await s.results(run)) == {"one": Status.FAILED, "two": Status.FAILED}
        report = await s.muster.suites.whole_report(run)
        texts = {}
        for name in ("json", "markdown", "html"):
            out = StringIO()
            await report.write(name, out)
            texts[name] = out.getvalue()
    words = "members of the council agree in 33.3%, their scores are 0.70 apart"
    told = json.loads(texts["json"])
    assert told["subjects"][0]["judge_spread"] == pytest.approx(0.7)
    assert told["subjects"][0]["variance"]["judge"] == pytest.approx(0.1433, abs=1e-4)
    said = told["cases"][0]["epochs"][0]["judgements"][0]
    assert [member["score"] for member in said["members"]] == [0.9, 0.8, 0.2]
    assert words in texts["markdown"]
    assert f"{MEMBERS[2]} 0.20 (won)" in texts["markdown"]
    assert words in texts["html"]
    assert f"{MEMBERS[0]} 0.90" in texts["html"]


async def test_a_council_that_is_split_leaves_its_case_unjudged_and_rescoring_agrees(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    verdicts = dict(zip(MEMBERS, (0.9, 0.2, 0.8), strict=True))
    async with stage(tmp_path, judge=heard(judge, verdicts, favoured=MEMBERS[:2])) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert run.result["counts"] == {"unjudged": 2}
        said = await judgement(s, run)
        assert said.failed
        assert said.failures == (
            "the council is split: verdicts with the same support differ "
            f"({MEMBERS[0]} passes it, {MEMBERS[1]} fails it)",
        )
        assert [member.score for member in said.members] == [0.9, 0.2, 0.8]
        assert said.tie == ""
        (result, _) = await s.results(run)
        assert "could not judge it: the council is split" in result.why
        found = s.muster.project.evidence.rescore(await archive_of(s, run))
        assert (found.ok, found.same) == (True, 2), found


async def test_a_critical_item_splits_a_council_too(tmp_path: Path) -> None:
    judge = write_council(tmp_path)

    def verdict(kind: float, brief: float) -> str:
        scores = {"kind": kind, "brief": brief}
        made = [{"id": name, "score": score, "evidence": "", "rationale": "so"} for name, score in scores.items()]
        return json.dumps({"items": made})

    verdicts = dict(zip(MEMBERS, (verdict(1, 1), verdict(0.2, 1), verdict(1, 1)), strict=True))
    async with stage(tmp_path, judge=heard(judge, verdicts, favoured=MEMBERS[:2])) as s:
        rubric = [{"id": "kind", "description": "Is so", "critical": True}, {"id": "brief", "description": "Is so"}]
        case = {"expected": {"rubric": rubric}, "evaluator_config": {"evaluator": "judge"}}
        a_suite(tmp_path, *(a_case(name.removeprefix("s/"), words, **case) for name, words in SAID.items()))
        run = await held(s, judge, threshold=0.5)
        assert run.result["counts"] == {"unjudged": 2}
        assert "the council is split" in (await judgement(s, run)).failures[0]


async def test_tied_verdicts_that_agree_count_and_every_report_names_the_tie(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge, favoured=MEMBERS[:2])) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert statuses(await s.results(run)) == {"one": Status.PASSED, "two": Status.PASSED}
        said = await judgement(s, run)
        words = said.tie
        assert words in {"tie, decided by draw", "tie, decided by tokens"}
        report = await s.muster.suites.whole_report(run)
        texts = {}
        for name in ("json", "markdown", "html"):
            out = StringIO()
            await report.write(name, out)
            texts[name] = out.getvalue()
        found = s.muster.project.evidence.rescore(await archive_of(s, run))
        assert (found.ok, found.same) == (True, 2), found
    told = json.loads(texts["json"])
    assert told["cases"][0]["epochs"][0]["judgements"][0]["tie"] == words
    assert f"of a council: {words}." in texts["markdown"]
    assert words in texts["html"]


async def test_a_council_that_is_against_every_verdict_judges_nothing(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge, favoured=("nobody",))) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert run.result["counts"] == {"unjudged": 2}
        why = "the council has no winning verdict: no verdict is supported: the best has -1.414"
        assert (await judgement(s, run)).failures == (why,)


async def test_verdicts_that_leave_an_item_out_have_no_part(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    twice = json.dumps({"items": [{"id": "kind", "score": 1, "evidence": "", "rationale": "it is so"}] * 2})
    rules = spoken(judge, SAID, dict.fromkeys(MEMBERS, twice))
    again = json.dumps({"text": twice, "claims": [], "final_scratchpad": ""})
    async with stage(tmp_path, judge=playing(*rules, {"answer": again})) as s:
        rubric = [{"id": name, "description": "Is so"} for name in ("kind", "brief")]
        cases = [
            a_case(case.removeprefix("s/"), words, expected={"rubric": rubric}, evaluator_config={"evaluator": "judge"})
            for case, words in SAID.items()
        ]
        a_suite(tmp_path, *cases)
        run = await held(s, judge)
        assert run.result["counts"] == {"unjudged": 2}
        said = await judgement(s, run)
        assert said.failed
        assert "0 of 3 members answered" in said.failures[0]
        assert "cannot be used: these items of the rubric are missing: brief" in said.failures[0]


@pytest.mark.parametrize("verdict", ["It is good.", a_verdict(1.5), '{"items": []}'])
async def test_a_verdict_in_no_shape_is_repaired_once_and_else_has_no_part(tmp_path: Path, verdict: str) -> None:
    judge = write_council(tmp_path)
    others = MEMBERS[1:]
    rules = [
        *spoken(judge, SAID, dict.fromkeys(others, 0.8), winner=others[0], shown_to=MEMBERS),
        *spoken(judge, {}, {MEMBERS[0]: verdict}),
    ]
    async with stage(tmp_path, judge=playing(*rules)) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert {result.score for result in await s.results(run)} == {0.8}
        said = await judgement(s, run)
        assert [member.score for member in said.members] == [None, 0.8, 0.8]
        assert said.members[0].flaw == "it proposed nothing in the deciding round"
        assert said.agreement == 1.0
        assert s.judge.audit.calls == 2 * (2 * len(MEMBERS) + 1)  # the repair is paid too


async def test_a_council_without_a_quorum_leaves_its_case_unjudged_and_names_why(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=playing({"answer": "no"})) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        assert run.result["counts"] == {"unjudged": 2}
        assert "members answered" in (await judgement(s, run)).failures[0]


async def test_a_judged_run_is_replayed_without_a_key_a_server_or_the_policy(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        before = await s.results(run)
        (tmp_path / "council.yaml").unlink()
    async with stage(tmp_path, variables=NO_KEYS) as s:
        source = await s.muster.suites.source(replay=run.id)
        spec = await s.muster.suites.spec(SuiteChoice(paths=(str(tmp_path / "cases.yaml"),)), source)
        again = await (await s.muster.suites.start(spec, origin=source.origin)).wait()
        assert again.state is RunState.COMPLETED, again.error
        assert await s.results(again) == before
        assert again.total.settled == 0


NO_KEYS = {
    "ANTHROPIC_API_KEY": "",
    "OPENAI_API_KEY": "",
    "ANTHROPIC_BASE_URL": NOWHERE,
    "OPENAI_BASE_URL": NOWHERE,
}


async def test_a_run_is_judged_again_by_a_council_and_back_by_one_judge(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        first = await held(s, JUDGE, judge_samples=2)
        assert statuses(await s.results(first)) == {"one": Status.FAILED, "two": Status.FAILED}
        asked = s.agent.audit.calls
        second = await (await s.muster.suites.rejudge(first, {"judge": judge})).wait()
        assert statuses(await s.results(second)) == {"one": Status.PASSED, "two": Status.PASSED}
        third = await (await s.muster.suites.rejudge(second, {"judge": JUDGE})).wait()
        assert statuses(await s.results(third)) == {"one": Status.FAILED, "two": Status.FAILED}
        assert s.agent.audit.calls == asked
        found = await s.muster.suites.compare(first.id, second.id)
        assert any(judge in note for note in found.notes)


async def test_an_edited_policy_is_another_council_whose_members_are_asked_again(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        calls = s.judge.audit.calls
        same = await (await s.muster.suites.rejudge(run, {"judge": judge})).wait()
        assert s.judge.audit.calls == calls
        (tmp_path / "council.yaml").write_text(
            "agents:\n" + "".join(f"  - {{ agent: {name}, role: strict }}\n" for name in MEMBERS) + "rounds: 1\n",
            encoding="utf-8",
        )
        other = await (await s.muster.suites.rejudge(same, {"judge": judge})).wait()
        assert s.judge.audit.calls == 2 * calls
        found = await s.muster.suites.compare(run.id, other.id)
        assert f"the policy of {judge} changed" in found.notes


async def test_evidence_holds_the_councils_and_scoring_it_again_reads_their_replies(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge)
        again = await (await s.muster.suites.rejudge(run, {"judge": judge})).wait()
        evidence = s.muster.project.evidence
        keys = evidence.make_keys(tmp_path / "signing.key")
        for one in (run, again):
            file = tmp_path / f"{one.id}.tar"
            await s.muster.suites.export_evidence(one.id, file, keys.private)
            found = evidence.rescore(file)
            assert (found.ok, found.same, found.unmentioned) == (True, 2, 0), found


async def archive_of(s: Stage, run: Run) -> Path:
    """Write the evidence of a run, signed with the key by which a forger signs too."""
    (s.folder / "signing.key").write_bytes(
        KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    (s.folder / "signing.key").chmod(0o600)
    return (await s.muster.suites.export_evidence(run.id, s.folder / "evidence.tar", s.folder / "signing.key")).path


async def test_evidence_whose_councils_were_forged_or_left_out_comes_out_otherwise(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        archive = await archive_of(s, await held(s, judge))

        def better(data: bytes) -> bytes:
            lines = [json.loads(line) for line in data.splitlines()]
            call = next(one for one in lines[0]["calls"] if one["key"] == f"round/01/propose/{MEMBERS[0]}")
            call["reply"]["text"] = call["reply"]["text"].replace("0.9", "0.1")
            return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

        evidence = s.muster.project.evidence
        changed = evidence.rescore(forged(archive, tmp_path, children_jsonl=better))
        assert (changed.ok, changed.same, changed.different) == (False, 1, 1)
        assert judge in changed.differences[0].why
        without = evidence.rescore(
            forged(archive, tmp_path, children_jsonl=lambda data: data.splitlines(keepends=True)[0])
        )
        assert (without.ok, without.same, without.different) == (False, 1, 1)
        assert "nothing is recorded under" in without.differences[0].why


async def test_a_run_travels_with_its_councils_and_is_replayed_elsewhere(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    judge = write_council(here)
    async with stage(here, judge=heard(judge)) as s:
        two_cases(here)
        run = await held(s, judge)
        before = await s.results(run)
        await s.muster.runs.export(run.id, tmp_path / "run.jsonl")
    async with stage(there, variables=NO_KEYS) as s:
        source = await s.muster.suites.source(replay=str(tmp_path / "run.jsonl"))
        spec = await s.muster.suites.spec(SuiteChoice(paths=(str(here / "cases.yaml"),)), source)
        again = await (await s.muster.suites.start(spec, origin=source.origin)).wait()
        assert await s.results(again) == before


async def test_judging_in_batches_asks_all_councils_together(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge, judge_dispatch="batch")
        assert statuses(await s.results(run)) == {"one": Status.PASSED, "two": Status.PASSED}
        assert (len(s.agent.audit.batches), s.agent.audit.calls) == (0, 2)
        assert len(s.judge.audit.batches) == 2 * len(MEMBERS)  # a batch for each model and phase, with both cases
        assert s.judge.audit.calls == 2 * 2 * len(MEMBERS)


async def test_a_budget_that_a_council_uses_up_stops_the_suite_and_can_be_raised(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        run = await held(s, judge, budget_usd="0.002")
        assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
        assert run.total.settled <= 2000
        again = await s.go_on(run, budget_usd="1")
        assert statuses(await s.results(again)) == {"one": Status.PASSED, "two": Status.PASSED}
        assert s.judge.audit.calls == 2 * 2 * len(MEMBERS)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, NotFound, "no such file"),
        ("agents: []\n", BadFile, "agents"),
        ("agents:\n  - { agent: nobody/none }\n  - { agent: sim/echo }\n", BadConfiguration, "nobody"),
        ("agents:\n  - { agent: ann }\n  - { agent: sim/echo }\n", BadArgument, "ann is a person"),
        ("agents:\n  - { agent: sim/a }\n  - { agent: sim/b }\nsynthesis: sim/echo\n", BadArgument, "synthesis"),
    ],
)
async def test_a_council_that_cannot_judge_is_refused_before_anything_is_stored(
    tmp_path: Path, text: str | None, error: type[MusterError], words: str
) -> None:
    if text is not None:
        (tmp_path / "council.yaml").write_text(text, encoding="utf-8")
    judge = f"council:{tmp_path / 'council.yaml'}"
    async with stage(tmp_path, toml='[agents.ann]\nkind = "human"\n') as s:
        two_cases(tmp_path)
        with pytest.raises(error, match=words):
            await held(s, judge)
        assert await s.muster.runs.newest(("suite",)) is None


async def test_members_without_a_key_are_refused_before_anything_is_stored(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, variables={"OPENAI_API_KEY": ""}) as s:
        two_cases(tmp_path)
        with pytest.raises(BadConfiguration, match="OPENAI_API_KEY"):
            await held(s, judge)
        assert await s.muster.runs.newest(("suite",)) is None


async def test_a_council_is_not_sampled(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path) as s:
        two_cases(tmp_path)
        with pytest.raises(BadArgument, match="whose members are the samples"):
            await held(s, judge, judge_samples=3)


async def test_a_plan_counts_the_calls_of_all_members(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=heard(judge)) as s:
        two_cases(tmp_path)
        spec = SuiteSpec(path=(str(tmp_path / "cases.yaml"),), agents=(MODEL,), judge=judge)
        found = s.muster.suites.plan(spec, quoting=Quoting.ALL)
        assert (found.judge.calls, found.judge.most_calls) == (12, 24)
        run = await held(s, judge)
        assert found.judge.most > run.total.settled > 0


async def test_a_run_that_was_left_waiting_for_its_councils_goes_on_where_it_was(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    slow = playing(*spoken(judge, SAID, SCORES), batch_ms=1500)
    async with stage(tmp_path, judge=slow) as s:
        two_cases(tmp_path)
        spec = {"path": [str(tmp_path / "cases.yaml")], "agents": [MODEL], "judge": judge, "judge_dispatch": "batch"}
        run = await (await s.muster.start("suite", spec, detach=True)).wait()
        assert run.state is RunState.WAITING
        (tmp_path / "council.yaml").unlink()
        run = await (await s.muster.resume(run.id)).wait()
        assert run.state is RunState.COMPLETED, run.error
        assert statuses(await s.results(run)) == {"one": Status.PASSED, "two": Status.PASSED}
        assert (s.agent.audit.calls, s.judge.audit.calls) == (2, 2 * 2 * len(MEMBERS))


async def test_canceling_a_suite_cancels_the_councils_that_it_waits_for(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path, judge=playing(*spoken(judge, SAID, SCORES), batch_ms=60_000)) as s:
        two_cases(tmp_path)
        spec = {"path": [str(tmp_path / "cases.yaml")], "agents": [MODEL], "judge": judge, "judge_dispatch": "batch"}
        run = await (await s.muster.start("suite", spec, detach=True)).wait()
        assert run.state is RunState.WAITING
        await s.muster.runs.cancel(run.id)
        family = [await s.muster.runs.get(run.id), *await s.muster._backend.store.archive.children(run.id)]
        assert {one.state for one in family} == {RunState.CANCELED}


async def test_a_submitted_run_holds_the_policy_that_its_worker_needs(tmp_path: Path) -> None:
    judge = write_council(tmp_path)
    async with stage(tmp_path) as s:
        two_cases(tmp_path)
        spec = {"path": [str(tmp_path / "cases.yaml")], "agents": [MODEL], "judge": judge}
        handle = await s.muster.submit("suite", spec)
        run = await s.muster.runs.get(handle.id)
        assert [member["name"] for member in run.spec["council"]["members"]] == list(MEMBERS)
