"""`muster run` from the outside: what it exits with, what it prints, what it leaves behind, and whom it asks."""

import json
import os
import signal
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .shell import PATIENCE, Result, Shell, line_with
from .suite_home import Home

AGENTS = """
[agents.counts]                # says what it is told, and keeps it, in one piece: several may be at it
kind = "program"
mode = "plain"
command = ["sh", "-c", 'said=$(cat); echo "$said" | tee -a asked']

[agents.wavers]                # is right once
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat >/dev/null; mkdir was-right 2>/dev/null && echo hello || echo no"]

[agents.waits]                 # answers when it may: where there is a gate, it knocks and waits
kind = "program"
mode = "plain"
command = ["sh", "-c", 'said=$(cat); echo "$said" | tee -a asked; test ! -p gate || { echo > knocks; cat gate; }']

[agents.sleeps]
kind = "program"
mode = "plain"
command = ["sleep", "60"]
timeout_secs = 0.2

[agents.dear]
kind = "program"
mode = "plain"
command = ["cat"]
budget_usd = 0.50

[agents.breaks]
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat >/dev/null; exit 1"]

[agents.keyed]
kind = "openai"
model = "some-model"
base_url = "http://127.0.0.1:9/v1"
key_env = "NOBODY_SETS_THIS_KEY"
"""

CASE = """
  - id: desk/{name}
    input: {{messages: [{{role: user, content: {text}}}]}}
    expected: {{output: [{{kind: contains, value: hello}}]}}"""
JUDGED = """
  - id: desk/kind
    input: {messages: [{role: user, content: hello you}]}
    evaluator_config: {evaluator: judge}
    expected: {rubric: [{id: kind, description: It is kind.}]}"""

PASSES = {"one": "hello one", "two": "hello two"}
FAILS = PASSES | {"three": "good day"}


def suite(*cases: str) -> str:
    return "\n".join(["schema_version: 1", "skill_or_agent: desk", "cases:"]) + "".join(cases) + "\n"


def greets(texts: dict[str, str]) -> str:
    """Write a suite of cases in which a greeting is wanted of an agent that says what it is told."""
    return suite(*(CASE.format(name=name, text=text) for name, text in texts.items()))


@pytest.fixture
def desk(shell: Shell) -> Shell:
    shell.write("muster.toml", AGENTS)
    shell.write("passes.yaml", greets(PASSES))
    shell.write("fails.yaml", greets(FAILS))
    shell.write("judged.yaml", suite(JUDGED))
    shell.write("skipped.yaml", suite(JUDGED + "\n    skip: not today"))
    return shell


@pytest.fixture
def here(desk: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    """The command in this process, for what is refused before anybody is asked."""
    monkeypatch.chdir(desk.folder)
    return Home(desk.folder, capsys)


def asked(shell: Shell) -> list[str]:
    """Give what the program was asked, in any order."""
    path = shell.folder / "asked"
    return sorted(path.read_text(encoding="utf-8").split("\n")[:-1]) if path.exists() else []


def ended(result: Result) -> dict[str, str]:
    """Give the cases that are named as not passed in the only envelope, and how they ended."""
    found = result.envelope()
    assert (found["command"], found["ok"], found["data"]["ok"]) == ("run", False, False)
    assert set(found["error"]) >= {"code", "message", "suggestions"}
    return {line["case"]: line["status"] for line in found["data"]["not_passed"]}


def table(result: Result) -> list[str]:
    """Give the lines of a table that are the same for the same answers: neither the run's id nor its time."""
    return [line for line in result.out.splitlines() if "run" not in line and "muster report" not in line]


@contextmanager
def gate(folder: Path) -> Iterator[None]:
    """Hold the agent that waits: the block begins when it has been asked, and it answers when the block ends."""
    (folder / "knocks").read_text(encoding="utf-8")
    yield
    with (folder / "gate").open("w", encoding="utf-8"):
        (folder / "gate").unlink()


def test_a_suite_in_which_all_pass_exits_0_and_a_quiet_one_says_nothing_else(desk: Shell) -> None:
    told = desk.muster("run", "passes.yaml", "--agent", "sim/echo")
    assert told.code == 0
    assert [line for line in told.out.splitlines() if "passed" in line and "desk/one" in line]
    assert "passed" in told.out.splitlines()[-2]
    assert "2 cases" in told.err
    quiet = desk.muster("run", "passes.yaml", "--agent", "sim/echo", "--json", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    data = quiet.data()
    assert (data["ok"], data["counts"], data["not_passed"]) == (True, {"passed": 2}, [])


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        (("passes.yaml", "--filter", "*one", "--agent", "wavers", "--epochs", "2"), {"desk/one": "flaky"}),
        (("judged.yaml", "--agent", "sim/echo", "--judge", "breaks"), {"desk/kind": "unjudged"}),
        (("passes.yaml", "--agent", "sleeps"), {"desk/one": "timed_out", "desk/two": "timed_out"}),
        (("skipped.yaml", "--agent", "sim/echo", "--judge", "breaks"), {}),
    ],
    ids=["flaky", "judge-out-of-reach", "all-timed-out", "all-skipped"],
)
def test_whatever_did_not_pass_exits_1_and_is_named(
    desk: Shell, arguments: tuple[str, ...], outcome: dict[str, str]
) -> None:
    done = desk.muster("run", *arguments, "--json")
    assert (done.code, ended(done)) == (1, outcome)
    assert done.envelope()["error"]["code"] == "not_passed"


def test_a_failed_case_exits_1_with_its_line_and_the_reports_are_written(desk: Shell) -> None:
    reports = ("--report", "junit=out/junit.xml", "--report", "html=page.html")
    done = desk.muster("run", "fails.yaml", "--agent", "sim/echo", "--json", *reports)
    assert (done.code, ended(done)) == (1, {"desk/three": "failed"})
    (line,) = done.envelope()["data"]["not_passed"]
    assert (line["file"], line["line"]) == ("fails.yaml", 10)
    assert "good day" in line["why"]
    assert failures(desk.folder / "out" / "junit.xml") == ["three"]
    assert "desk/three" in (desk.folder / "page.html").read_text(encoding="utf-8")


def failures(path: Path) -> list[str]:
    """Give the last words of the names of the cases that failed, of a JUnit report."""
    found = ElementTree.parse(path).getroot().iter("testcase")
    return [str(case.get("name")).rpartition("/")[2] for case in found if case.find("failure") is not None]


def test_a_run_over_its_budget_exits_1_and_leaves_reports_of_what_it_had_done(desk: Shell) -> None:
    reports = ("--report", "junit=junit.xml", "--report", "html=page.html", "--report", "json=all.json")
    limits = ("--budget", "0.75", "--concurrency", "1")
    done = desk.muster("run", "fails.yaml", "--agent", "dear", "--json", *limits, *reports)
    error = done.envelope()["error"]
    assert (done.code, error["code"]) == (1, "budget")
    assert "$0.75" in error["message"]
    left = json.loads((desk.folder / "all.json").read_text(encoding="utf-8"))
    assert (left["ok"], left["counts"]["passed"], left["results_missing"]) == (False, 1, 2)
    assert left["run"]["uncertain_usd"] == 0.5
    assert ElementTree.parse(desk.folder / "junit.xml").getroot().tag == "testsuites"
    assert "desk/one" in (desk.folder / "page.html").read_text(encoding="utf-8")


BAD = greets(PASSES).replace("schema_version: 1", "schema_version: 7")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("bad.yaml", "--agent", "sim/echo"), 2, ["bad.yaml:1", "schema_version"]),
        (("passes.yaml", "--agent", "sim/echo", "--threshold", "3"), 2, ["--threshold"]),
        (("passes.yaml", "--agent", "sim/echo", "--report", "pdf=x.pdf"), 2, ["pdf", "junit"]),
        (("passes.yaml", "--agent", "sim/echo", "--report", "html=bad.yaml/r.html"), 2, ["bad.yaml/r.html cannot be"]),
        (("passes.yaml", "--agent", "sim/echo", "--report", "html=/proc/r.html"), 2, ["/proc/r.html cannot be"]),
        (("passes.yaml", "--agent", "sim/echo", "--budget", "much"), 2, ["much"]),
        (("passes.yaml",), 2, ["desk/one", "--agent"]),
        (("passes.yaml", "--agent", "nobody"), 3, ["'nobody'", "counts"]),
        (("passes.yaml", "--agent", "nope/x"), 3, ["unknown agent 'nope/x'\n  use a model: "]),
        (("passes.yaml", "--agent", "sim/echo", "--judge", "nope"), 3, ["'nope'", "counts"]),
        (("passes.yaml", "--agent", "keyed", "--allow-unpriced"), 3, ["NOBODY_SETS_THIS_KEY"]),
        (("judged.yaml", "--agent", "sim/echo"), 3, ["desk/kind", "judged.yaml:4", "--judge"]),
        (("empty", "--agent", "sim/echo"), 5, ["no suite in empty"]),
        (("chain.yaml", "--agent", "sim/echo"), 2, ["is a chain, not a suite", "muster chain run chain.yaml"]),
        (("verify.yaml", "--agent", "sim/echo"), 2, ["declares verification agents", "--agents verify.yaml"]),
        (("passes.yaml", "--agent", "sim/echo", "--report", "hmtl=r"), 2, ["--report", "Did you mean 'html'?"]),
        (("passes.yaml", "--agent", "sim/echo", "--timeout", "0"), 2, ["--timeout must be more than 0"]),
        (("passes.yaml", "--agent", "sim/echo", "--filter", "other/*"), 5, ["other/*", "cases: desk/one, desk/two"]),
        (("passes.yaml", "--agent", "sim/echo", "--filter", "oen"), 5, ["did you mean desk/one?"]),
        (("passes.yaml", "--agent", "sim/echo", "--tags", "smoke"), 5, ["smoke"]),
        (("passes.yaml", "--agent", "sim/echo", "--tags", ""), 2, ["--tags has an empty tag, which selects nothing"]),
        (
            ("passes.yaml", "--agent", "sim/echo", "--linger", "5"),
            2,
            ["--linger applies to batches", "--dispatch batch"],
        ),
        (
            ("passes.yaml", "--agent", "sim/echo", "--no-cache"),
            2,
            ["--no-cache applies to batches", "--dispatch batch"],
        ),
        (("/", "--agent", "sim/echo"), 2, ["/ is the root of the file system", "name the folder"]),
        (("nowhere", "--agent", "sim/echo"), 5, ["nowhere"]),
        (("passes.yaml", "--replay", "no-such-run"), 5, ["'no-such-run'"]),
        (("passes.yaml", "--reuse", "no-such-run"), 5, ["'no-such-run'"]),
        (("passes.yaml", "--agent", "sim/echo", "--only-failed", "no-such-run"), 5, ["'no-such-run'"]),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_exit_code_before_a_run_is_stored(
    here: Home, arguments: tuple[str, ...], code: int, words: list[str]
) -> None:
    (here.folder / "bad.yaml").write_text(BAD, encoding="utf-8")
    (here.folder / "empty").mkdir()
    (here.folder / "chain.yaml").write_text("name: c\nsteps: []\n", encoding="utf-8")
    (here.folder / "verify.yaml").write_text("version: 1\nagents: []\n", encoding="utf-8")
    told = here.muster("run", *arguments, "--quiet")
    assert (told.code, told.out) == (code, "")
    assert told.err.startswith("error: ")
    for word in words:
        assert word in told.err
    in_json = here.muster("run", *arguments, "--quiet", "--json")
    assert (in_json.code, in_json.err) == (code, "")
    assert in_json.error()["message"] in told.err
    assert here.muster("runs", "list", "--json").data() == []


def test_an_interrupted_run_exits_4_and_ends_as_if_nothing_had_happened_when_it_is_resumed(desk: Shell) -> None:
    command = ("run", "fails.yaml", "--agent", "waits", "--concurrency", "1", "--name")
    for name in ("gate", "knocks"):
        os.mkfifo(desk.folder / name)
    with desk.start(*command, "disturbed") as process:
        with gate(desk.folder):
            process.send_signal(signal.SIGINT)
            line_with(process.stderr, "Ctrl-C")
        shown, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    assert "muster runs resume" in told
    assert "desk/one" in shown
    assert asked(desk) == ["hello one"]
    resumed = desk.muster("runs", "resume", "disturbed", "--json")
    assert asked(desk) == sorted(FAILS.values())
    undisturbed = desk.muster(*command, "undisturbed", "--json")
    again = desk.muster("runs", "resume", "disturbed", "--json")
    assert [resumed.code, undisturbed.code, again.code] == [1, 1, 1]
    assert outcome(resumed) == outcome(undisturbed) == outcome(again)
    assert again.envelope()["data"]["run"]["state"] == "completed"
    assert len(asked(desk)) == 2 * len(FAILS)


def outcome(result: Result) -> tuple[Any, ...]:
    data = result.envelope()["data"]
    return data["verdict"], data["counts"], data["not_passed"], data["results_missing"]


def test_recorded_answers_give_the_same_table_every_time_and_what_is_missing_does_not_pass(desk: Shell) -> None:
    said = {"one": "hello", "two": "no"}
    recorded = [
        {"tool": "agent_response", "args_match": {"case_id": f"desk/{name}"}, "response": {"content": text}}
        for name, text in said.items()
    ]
    desk.write("recorded.json", json.dumps(recorded))
    first, second = (desk.muster("run", "fails.yaml", "--replay", "recorded.json", "--quiet") for _ in range(2))
    assert (first.code, second.code, first.err) == (1, 1, "")
    assert table(first) == table(second)
    ends = [line.split()[1:3] for line in table(first) if " desk/" in line]
    assert ends == [["passed", "desk/one"], ["failed", "desk/two"], ["error", "desk/three"]]


def test_a_run_is_replayed_from_its_file_reused_for_what_is_new_and_repeated_for_what_failed(desk: Shell) -> None:
    before = desk.muster("run", "fails.yaml", "--agent", "counts", "--name", "first")
    assert asked(desk) == sorted(FAILS.values())
    assert desk.muster("runs", "export", "first", "-o", "first.jsonl.gz").code == 0

    elsewhere = ("--home", "elsewhere", "--replay", "first.jsonl.gz")
    once, twice = (desk.muster("run", "fails.yaml", *elsewhere) for _ in range(2))
    assert (before.code, once.code, twice.code) == (1, 1, 1)
    assert table(before) == table(once) == table(twice)

    desk.write("fails.yaml", greets(FAILS | {"two": "hello again"}))
    printed = desk.muster("run", "fails.yaml", "--replay", "first", "--report", "json=-", "--quiet")
    assert (printed.code, printed.err) == (1, "")
    report = json.loads(printed.out)
    assert {line["case"]: line["status"] for line in report["not_passed"]} == {
        "desk/two": "error",
        "desk/three": "failed",
    }
    assert report["run"]["state"] == "completed"
    assert asked(desk) == sorted(FAILS.values())

    (desk.folder / "asked").unlink()
    reused = desk.muster("run", "fails.yaml", "--reuse", "first", "--json")
    assert (reused.code, ended(reused)) == (1, {"desk/three": "failed"})
    assert asked(desk) == ["hello again"]

    (desk.folder / "asked").unlink()
    repeated = desk.muster("run", "fails.yaml", "--only-failed", "first", "--json")
    assert (repeated.code, ended(repeated)) == (1, {"desk/three": "failed"})
    assert repeated.envelope()["data"]["cases_total"] == 1
    assert asked(desk) == ["good day"]


def test_a_completed_run_says_what_to_type_and_is_watched_reported_and_named_by_what_it_was(desk: Shell) -> None:
    assert desk.muster("run", "fails.yaml", "--agent", "breaks", "--judge", "sim/echo", "--name", "broken").code == 1
    run = desk.run("broken")["id"]
    told = desk.muster("runs", "resume", "broken")
    assert (told.code, "judged by" in told.out) == (1, False)
    for way in ("--reuse", "--only-failed"):
        assert f"muster run fails.yaml {way} {run}" in told.err
    suggestions = desk.muster("runs", "resume", "broken", "--json").error()["suggestions"]
    assert suggestions[:2] == [f"muster run fails.yaml {way} {run}" for way in ("--reuse", "--only-failed")]
    assert desk.muster("runs", "watch", "broken").code == 1
    assert desk.muster("ask", "sim/echo", "hello").code == 0
    assert desk.muster("runs", "watch", "last").code == 0
    assert desk.muster("report", "last", "--json").data()["run"] == run


def test_only_failed_takes_over_who_is_asked_and_what_decides_unless_it_is_given(desk: Shell) -> None:
    first = ("--agent", "counts", "--judge", "sim/echo", "--epochs", "2", "--threshold", "0.9")
    assert desk.muster("run", "judged.yaml", *first, "--name", "first").code == 1  # an echo is no judge
    given = ("--agent", "sim/echo", "--judge", "counts", "--epochs", "1", "--threshold", "0.7")  # defaults too
    for more, wanted in (((), ("counts", "sim/echo", 2, 0.9)), (given, ("sim/echo", "counts", 1, 0.7))):
        assert desk.muster("run", "judged.yaml", "--only-failed", "first", *more).code == 1
        desk.muster("runs", "export", "last", "-o", "last.jsonl")
        spec = json.loads((desk.folder / "last.jsonl").read_text(encoding="utf-8").splitlines()[1])["run"]["spec"]
        found = (*spec["agents"], spec["judge"], spec.get("epochs", 1), spec.get("threshold", 0.7))
        assert found == wanted


def test_the_last_run_is_the_last_of_a_suite_for_whatever_works_on_suites(desk: Shell) -> None:
    empty = desk.muster("review", "last", "--json")
    assert (empty.code, empty.error()["message"]) == (5, "this store has no suite yet")
    assert desk.muster("run", "fails.yaml", "--agent", "counts").code == 1
    run = desk.muster("report", "last", "--json").data()["run"]
    assert desk.muster("evidence", "keygen").code == 0
    assert desk.muster("ask", "sim/echo", "hello").code == 0
    assert desk.muster("review", "last", "--json").data()["run"] == run
    assert desk.muster("review", "last", "desk/one", "right", "--json").data()["run"] == run
    assert desk.muster("evidence", "export", "last", "-o", "e.tar").code == 0
    assert desk.muster("baseline", "set", "good", "last", "--json").data()["run"] == run
    assert desk.muster("run", "fails.yaml", "--reuse", "last").code == 1
