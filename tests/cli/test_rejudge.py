"""`muster runs rejudge`: another judge over answers that are known; the agent is left alone."""

from .shell import Shell

VERDICT = '{"items": [{"id": "kind", "score": %d, "evidence": "hello", "rationale": "so it is"}]}'
AGENTS = """
[agents.counts]
kind = "program"
mode = "plain"
command = ["sh", "-c", "{ cat; echo; } | tee -a asked"]

[agents.mild]
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat >/dev/null; echo mild >> judges; cat mild.json"]

[agents.stern]
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat >/dev/null; echo stern >> judges; cat stern.json"]
"""
SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/kind
    input: {messages: [{role: user, content: hello you}]}
    evaluator_config: {evaluator: judge}
    expected: {rubric: [{id: kind, description: It is kind.}]}
"""


def test_only_the_new_judge_is_asked_and_its_word_decides_the_exit_code(shell: Shell) -> None:
    shell.write("muster.toml", AGENTS)
    shell.write("desk.yaml", SUITE)
    shell.write("mild.json", VERDICT % 1)
    shell.write("stern.json", VERDICT % 0)
    before = shell.muster("run", "desk.yaml", "--agent", "counts", "--judge", "mild", "--name", "first", "--json")
    assert (before.code, before.data()["counts"]) == (0, {"passed": 1})
    shell.write("desk.yaml", "this is no suite any more")  # the answers and the cases are in the run

    after = shell.muster("runs", "rejudge", "first", "--judge", "stern", "--report", "sarif=after.sarif", "--json")
    found = after.envelope()
    assert (after.code, found["ok"], found["error"]["code"]) == (1, False, "not_passed")
    assert [(line["case"], line["status"]) for line in found["data"]["not_passed"]] == [("desk/kind", "failed")]
    assert (found["data"]["run"]["judge"], found["data"]["run"]["id"] != before.data()["run"]["id"]) == ("stern", True)
    assert "desk/kind" in (shell.folder / "after.sarif").read_text(encoding="utf-8")
    assert (shell.folder / "asked").read_text(encoding="utf-8") == "hello you\n"
    assert (shell.folder / "judges").read_text(encoding="utf-8") == "mild\nstern\n"

    missing = shell.muster("runs", "rejudge", "nobody", "--judge", "stern", "--json")
    assert (missing.code, missing.error()["code"]) == (5, "not_found")


def test_what_leaves_nothing_to_do_is_refused(shell: Shell) -> None:
    shell.write("desk.yaml", SUITE)
    ran = shell.muster("run", "desk.yaml", "--agent", "sim/echo", "--judge", "sim/echo", "--evaluator", "rules")
    assert ran.code == 1
    for words, reason in (
        (
            ("rejudge", "last", "--judge", "sim/echo", "--evaluator", "rules"),
            "--evaluator must be judge or all, not 'rules'",
        ),
        (("rejudge", "last", "--judge", "sim/echo"), "with the evaluator rules there is nothing to judge"),
        (
            ("rejudge", "last", "--judge", "sim/echo", "--evaluator", "all", "--linger", "3"),
            "--linger applies to batches",
        ),
        (("resume", "last", "--budget", "0"), "--budget must be more than 0, not 0"),
    ):
        told = shell.muster("runs", *words)
        assert (told.code, told.out) == (2, "")
        assert reason in told.err
