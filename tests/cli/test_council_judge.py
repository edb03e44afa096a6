"""`--judge council:FILE`: a council of programs judges; replayed, rescored and judged again by the command line."""

import sys

import pytest

from .shell import Shell
from .test_rejudge import SUITE, VERDICT

# A member of the exec protocol: its verdict has the score of its argument, and it favours high scores.
MEMBER = """
import json, sys
told, score = json.load(sys.stdin), float(sys.argv[1])
verdict = {"items": [{"id": "kind", "score": score, "evidence": "hello", "rationale": "so it is"}]}
def weigh(candidate):
    found = json.loads(candidate["proposal"]["content"])["items"][0]["score"]
    return {"target_id": candidate["id"], "score": found, "justification": "it fits"}
if told["phase"] == "propose":
    open("asked", "a").write("x")
    print(json.dumps({"thought_process": "", "content": json.dumps(verdict)}))
else:
    print(json.dumps({"evaluations": [weigh(one) for one in told["context"]["candidates"]]}))
"""
POLICY = "agents: [{agent: mild}, {agent: fair}, {agent: stern}]\nrounds: 1\n"
SINGLE = """
[agents.single]
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat >/dev/null; cat single.json"]
"""


@pytest.fixture
def judging(shell: Shell) -> Shell:
    """A folder with a suite, a council and a single judge."""
    members = {"mild": 0.9, "fair": 0.8, "stern": 0.1}
    sections = [
        f'[agents.{name}]\nkind = "program"\nmode = "exec"\ncommand = ["{sys.executable}", "member.py", "{score}"]\n'
        for name, score in members.items()
    ]
    shell.write("muster.toml", "\n".join([*sections, SINGLE]))
    shell.write("member.py", MEMBER)
    shell.write("single.json", VERDICT % 0)
    shell.write("desk.yaml", SUITE)
    shell.write("council.yaml", POLICY)
    return shell


def test_a_council_judges_is_replayed_rescored_and_judged_over(judging: Shell) -> None:
    command = ("run", "desk.yaml", "--agent", "sim/echo", "--judge", "council:council.yaml", "--name", "first")
    first = judging.muster(*command)
    assert first.code == 0, first
    assert "judged by council:council.yaml" in first.out
    assert "members of the council agree in 33.3%, their scores are 0.80 apart" in first.out
    asked = (judging.folder / "asked").read_text(encoding="utf-8")
    assert asked == "xxx"

    (judging.folder / "council.yaml").unlink()
    (judging.folder / "member.py").unlink()
    replayed = judging.muster("run", "desk.yaml", "--replay", "first", "--json")
    assert (replayed.code, replayed.data()["subjects"][0]["mean_score"]) == (0, 0.9)
    assert judging.muster("evidence", "keygen").code == 0
    assert judging.muster("evidence", "export", "first", "-o", "first.tar").code == 0
    rescored = judging.muster("evidence", "rescore", "first.tar", "--json")
    assert (rescored.code, rescored.data()["same"]) == (0, 1)

    single = judging.muster("runs", "rejudge", "first", "--judge", "single", "--name", "second", "--json")
    assert (single.code, single.envelope()["data"]["counts"]) == (1, {"failed": 1})
    judging.write("council.yaml", POLICY)
    judging.write("member.py", MEMBER)
    back = judging.muster("runs", "rejudge", "second", "--judge", "council:council.yaml", "--json")
    assert (back.code, back.data()["counts"]) == (0, {"passed": 1})
    compared = judging.muster("compare", "first", "second")
    assert "council:council.yaml in A, single in B" in compared.out + compared.err


@pytest.mark.parametrize(
    ("policy", "options", "code", "words"),
    [
        (None, (), 5, "no such file: council.yaml"),
        ("agents: 3\n", (), 2, "council.yaml:1"),
        ("agents: [{agent: mild}, {agent: nobody}]\n", (), 3, "unknown agent 'nobody'"),
        ("agents: [{agent: mild}, {agent: openai/gpt-5}]\n", (), 3, "OPENAI_API_KEY"),
        (POLICY, ("--judge-samples", "2"), 2, "whose members are the samples"),
        (POLICY + "baseline: mild\n", (), 2, "has no baseline"),
    ],
)
def test_what_cannot_judge_is_refused_before_anything_is_stored(
    judging: Shell, policy: str | None, options: tuple[str, ...], code: int, words: str
) -> None:
    (judging.folder / "council.yaml").unlink()
    if policy is not None:
        judging.write("council.yaml", policy)
    refused = judging.muster("run", "desk.yaml", "--agent", "sim/echo", "--judge", "council:council.yaml", *options)
    assert (refused.code, words in refused.err) == (code, True), refused
    assert not (judging.folder / "asked").exists()
    assert "deliberation" not in judging.muster("runs", "list").out


def test_a_plan_counts_the_calls_of_a_council(judging: Shell) -> None:
    planned = judging.muster("plan", "desk.yaml", "--agent", "sim/echo", "--judge", "council:council.yaml", "--json")
    assert (planned.code, planned.data()["judge"]["calls"]) == (0, 6)
