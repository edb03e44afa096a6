"""Every way in which a verification could fail silently: none of them passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.agent import Timeouts
from muster.domain.run import RunState
from muster.sim.options import Options
from muster.verify.declaration.verification import Limits, Verifier
from muster.verify.findings.journal import AgentReport, Ending
from tests.suites.stage import playing, troubled
from tests.verify.stage import (
    BRISK,
    CLEAN,
    CODE,
    HASTY,
    OPENAI,
    WavesStage,
    a_checker,
    a_model,
    a_report,
    a_reviewer,
    said,
    stage,
)

FENCED = f"```json\n{CLEAN}\n```"


def always(fault: str, **more: Any) -> Options:
    """Set a server up at which something always goes wrong."""
    return replace(playing({"answer": CLEAN}), faults=troubled({"fault": fault, "times": "always", **more}))


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """One way to fail, and what is said of it."""

    code: str
    says: str
    server: Options
    how: str = "live"
    timeouts: Timeouts | None = None
    agent: Mapping[str, Any] = field(default_factory=dict)


def answering(code: str, says: str, answer: Any, **rest: Any) -> Trouble:
    """Make the trouble of a model that answers so, and no better when it is asked for a repair."""
    return Trouble(code=code, says=says, server=playing({"answer": answer}), **rest)


TROUBLES = {
    "no JSON": answering("unparsed", "", "Looks good to me."),
    "JSON that is no object": answering("unparsed", "no object", "[]"),
    "prose before it": answering("unparsed", "", f"Here is my report:\n{CLEAN}"),
    "prose after it": answering("unparsed", "", f"{CLEAN}\nI hope that helps!"),
    "prose around a fence": answering("unparsed", "", f"Here it is:\n{FENCED}"),
    "two objects": answering("unparsed", "", f"{CLEAN}\n{CLEAN}"),
    "no findings at all": answering("unparsed", "findings", "{}"),
    "counts that say otherwise": answering(
        "unparsed", "critical is 3 in the summary", a_report(summary={"total": 3, "critical": 3})
    ),
    "words that say otherwise": answering(
        "unparsed", "3 critical issues", a_report(summary="I found 3 critical issues in this code.")
    ),
    "a severity that nobody knows": answering("unparsed", "no severity", a_report(said(severity="meh"))),
    "a score that is missing": answering("unparsed", "score", CLEAN, agent={"shape": "review"}),
    "a refusal": answering("refused", "refusal", {"text": "I cannot help with that.", "stop": "refused"}),
    "an answer that is cut": answering("cut", "cut off", {"text": '{"findings": [', "stop": "max_tokens"}),
    "nothing": answering("empty", "empty", ""),
    "too much for its tokens": answering("cut", "cut off", a_report(said(finding="x" * 90)), agent={"max_tokens": 20}),
    "a context too large": Trouble(
        code="invalid_request", says="prompt is too long", server=Options(context_tokens=100)
    ),
    "a context too large, in a batch": Trouble(
        code="invalid_request", says="prompt is too long", server=Options(context_tokens=100), how="batch"
    ),
    "time running out": Trouble(code="out_of_time", says="", server=always("timeout"), timeouts=HASTY),
    "a provider that is broken": Trouble(code="provider_fault", says="", server=always("500")),
    "a provider that talks nonsense": Trouble(code="outcome_unknown", says="", server=always("garbage")),
    "a batch that expires": Trouble(code="expired", says="expired before", server=always("expired"), how="batch"),
    "a batch that expires, at the other one": Trouble(
        code="expired", says="expired before", server=always("expired"), how="batch", agent={"model": OPENAI}
    ),
    "a batch that is not taken": Trouble(
        code="invalid_request", says="", server=always("validation_failure"), how="batch"
    ),
}


async def check_nothing_passed(s: WavesStage, run: Any) -> dict[str, AgentReport]:
    """Nothing of a run says that it was a success, and nothing was done as if it had been one."""
    report = await s.report(run)
    assert (run.result["passed"], report.ok) == (False, False)
    assert run.result["cleared"] == []
    assert len(s.markers) == 1
    assert "passed" not in report.verdict.lower().replace("not passed", "")
    return await s.agents(run)


@pytest.mark.parametrize("name", TROUBLES)
async def test_an_agent_without_a_report_is_broken_and_the_next_wave_is_not_begun(tmp_path: Path, name: str) -> None:
    trouble = TROUBLES[name]
    async with stage(tmp_path, trouble.server, trouble.server, timeouts=trouble.timeouts) as s:
        s.mark("one", "a.py")
        verifier = replace(a_model("auditor", thresholds=()), **trouble.agent)
        run = await s.verify(verifier, a_reviewer(), how=trouble.how)
        agents = await check_nothing_passed(s, run)
        assert list(agents) == ["auditor"]
        assert (agents["auditor"].ending, agents["auditor"].codes) == (Ending.BROKEN, {trouble.code: 1})
        assert trouble.says in agents["auditor"].why
        assert run.result["not_started"] == [2]


@pytest.mark.parametrize("fault", ["missing", "truncated"])
async def test_an_answer_that_is_lost_leaves_the_verification_waiting_and_no_marker_is_cleared(
    tmp_path: Path, fault: str
) -> None:
    server = always(fault, op="member")
    async with stage(tmp_path, server, server, patience=replace(BRISK, deadline=0.5)) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor", thresholds=()), a_reviewer(), how="batch")
        assert (run.state, run.ended_reason, run.result) == (RunState.WAITING, "batch_lost", None)
        assert len(s.markers) == 1


@pytest.mark.parametrize("answer", [FENCED, f"```\n{CLEAN}\n```", f"\n\n{CLEAN}\n"])
async def test_json_in_a_fence_of_its_own_is_a_report(tmp_path: Path, answer: str) -> None:
    async with stage(tmp_path, playing({"answer": answer})) as s:
        run = await s.verify(a_model("auditor"))
        assert run.result["passed"]
        assert s.anthropic.audit.calls == 1


async def test_a_reply_that_can_be_repaired_counts_and_is_told(tmp_path: Path) -> None:
    rules = ({"turn": 2, "answer": a_report(said(line=2, severity="low"))}, {"answer": f"Sure! {CLEAN}"})
    async with stage(tmp_path, playing(*rules)) as s:
        run = await s.verify(a_model("auditor"))
        auditor = (await s.agents(run))["auditor"]
        assert (auditor.ending, auditor.repaired, auditor.counts.low) == (Ending.PASSED, 1, 1)
        assert [key.rpartition("/")[2] for key in auditor.keys][1:] == ["repair"]
        assert auditor.cost == run.spent.billed


async def test_one_chunk_of_many_without_a_report_breaks_the_agent(tmp_path: Path) -> None:
    """Of three calls one expires in every batch it is in: what the others say does not make a whole."""
    faults = troubled({"fault": "expired", "times": "always", "text": "b[.]py lines"})
    server = replace(playing({"answer": CLEAN}), faults=faults)
    files = dict.fromkeys(("a.py", "b.py", "c.py"), CODE * 40)
    async with stage(tmp_path, server, files=files) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor"), how="batch", limits=Limits(chunk_bytes=3_000))
        auditor = (await check_nothing_passed(s, run))["auditor"]
        assert (auditor.ending, auditor.chunks, auditor.answered) == (Ending.BROKEN, 3, 2)
        assert auditor.codes == {"expired": 1}
        assert "no report for 1 of 3 chunks" in auditor.why
        assert [batch["requests"] for batch in s.anthropic.audit.batches] == [3, 1, 1]


CHANGES = "open('a.py', 'a').write('# changed\\n')"
CHECKERS = {
    "it is not installed": ("not_started", Verifier(name="check", command=("muster-no-such-checker",))),
    "it crashes": ("bad_exit", a_checker("check", "raise SystemExit(3)")),
    "it is killed": ("bad_exit", a_checker("check", "import os; os.kill(os.getpid(), 9)")),
    "its output cannot be read": ("unparsed", a_checker("check", "print('well')", parser="json")),
    "its output is half": ("unparsed", a_checker("check", "print('[{')", parser="ruff")),
    "it fails and says nothing": ("unparsed", a_checker("check", "raise SystemExit(1)")),
    "what it says is nowhere": ("unparsed", a_checker("check", "print('no.py:1: wrong'); raise SystemExit(1)")),
    "it takes too long": ("timed_out", a_checker("check", "import time; time.sleep(60)", timeout=0.5)),
    "it changes what it checks": ("changed", a_checker("check", CHANGES)),
}


@pytest.mark.parametrize("name", CHECKERS)
async def test_a_checker_that_did_not_do_its_work_is_broken(tmp_path: Path, name: str) -> None:
    code, verifier = CHECKERS[name]
    usual = a_checker("check", "pass", thresholds=())
    async with stage(tmp_path) as s:
        s.mark("one", "a.py")
        given = replace(verifier, kind=usual.kind, parser=verifier.parser or usual.parser, thresholds=())
        run = await s.verify(given, a_model("auditor"), a_reviewer())
        agents = await check_nothing_passed(s, run)
        assert {name: one.ending for name, one in agents.items()} == {"check": Ending.BROKEN, "auditor": Ending.PASSED}
        assert agents["check"].codes == {code: 1}
        assert run.result["not_started"] == [2]


async def test_a_file_that_was_changed_before_a_checker_came_to_it_breaks_the_checker(tmp_path: Path) -> None:
    """The first checker is asked about other files, and changes this one."""
    async with stage(tmp_path, files={"a.py": CODE, "b.txt": "words\n"}) as s:
        s.mark("one", "a.py")
        first = a_checker("first", CHANGES, include=("b.txt",))
        run = await s.verify(first, a_checker("second", "pass", wave=2, include=("*.py",)))
        agents = await check_nothing_passed(s, run)
        assert [agents[name].ending for name in ("first", "second")] == [Ending.PASSED, Ending.BROKEN]
        assert "files were changed before it ran: a.py" in agents["second"].why


@pytest.mark.parametrize("file", ["gone.py", "out.py", "folder"])
async def test_a_file_that_cannot_be_read_stops_the_run_before_anything_is_spent(tmp_path: Path, file: str) -> None:
    (tmp_path / "elsewhere.py").write_text(CODE, encoding="utf-8")
    async with stage(tmp_path) as s:
        (s.root / "folder").mkdir()
        (s.root / "out.py").symlink_to(tmp_path / "elsewhere.py")
        marker = s.mark("one", "a.py")
        run = await s.verify(a_model("auditor"), files=("a.py", file))
        assert (run.state, run.ended_reason) == (RunState.FAILED, "bad_file")
        assert run.error is not None
        assert file in run.error["message"]
        assert (s.anthropic.audit.requests, marker.exists()) == (0, True)


@pytest.mark.parametrize("files", [{}, {"a.bin": "\0"}, {"a.py": ""}], ids=["none", "binary", "empty"])
async def test_no_files_are_no_success(tmp_path: Path, files: dict[str, str]) -> None:
    async with stage(tmp_path, files=files) as s:
        run = await s.verify(a_model("auditor"), a_checker("check", "pass"), a_reviewer())
        report = await s.report(run)
        assert (run.result["passed"], report.ok, run.result["files"]) == (False, False, 0)
        assert {agent.ending for agent in report.agents} == {Ending.IDLE}
        assert "no file" in report.verdict
        assert s.anthropic.audit.requests == 0


async def test_a_wave_in_which_nobody_has_a_file_leaves_the_verdict_to_the_others(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor", include=("*.js",)), a_reviewer())
        assert [one.ending for one in (await s.agents(run)).values()] == [Ending.IDLE, Ending.PASSED]
        assert run.result["passed"]
        assert (await s.report(run)).ok


async def test_where_every_wave_is_without_a_file_nothing_has_passed(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor", include=("*.js",)), a_reviewer(include=("*.js",)))
        agents = await check_nothing_passed(s, run)
        assert {one.ending for one in agents.values()} == {Ending.IDLE}


async def test_an_agent_without_a_file_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        idle = a_checker("idle", "raise SystemExit(3)", include=("*.js",))
        run = await s.verify(a_model("auditor"), idle, a_reviewer())
        assert run.result["passed"]
        assert (await s.agents(run))["idle"].ending is Ending.IDLE


async def test_a_file_that_is_for_nobody_is_no_success(tmp_path: Path) -> None:
    async with stage(tmp_path, files={"a.py": CODE, "b.js": "1;\n"}) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor", include=("*.py",)))
        await check_nothing_passed(s, run)
        assert run.result["unseen"] == ["b.js"]
        assert run.result["waves"] == {"1": True}


async def test_an_agent_that_nobody_knows_stops_the_run(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor", model="nobody"))
        assert (run.state, run.ended_reason) == (RunState.FAILED, "configuration")


async def test_a_key_that_is_refused_stops_the_run(tmp_path: Path) -> None:
    async with stage(tmp_path, Options(key="another")) as s:
        run = await s.verify(a_model("auditor"))
        assert (run.state, run.ended_reason) == (RunState.FAILED, "auth_refused")
