"""`muster plan`: calls and a range of cost, without a key, and without a trace."""

from .shell import Shell

MODEL, JUDGE = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/greets
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
  - id: desk/kind
    input: {messages: [{role: user, content: help me}]}
    evaluator_config: {evaluator: judge}
    expected: {rubric: [{id: kind, description: It is kind.}]}
  - id: desk/later
    skip: not today
    input: {messages: [{role: user, content: wait}]}
    expected: {output: [{kind: contains, value: hello}]}
"""
PLAN = ("plan", "desk.yaml", "--agent", MODEL, "--judge", JUDGE, "--epochs", "2")


def test_a_plan_tells_calls_and_a_range_without_a_key_and_stores_nothing(shell: Shell) -> None:
    shell.write("desk.yaml", SUITE)
    told = shell.muster(*PLAN)
    assert told.code == 0
    assert "3 cases" in told.out
    rows = {words[0]: words for words in map(str.split, told.out.splitlines()) if words}
    assert [rows[who][1] for who in (MODEL, "judge", "together")] == ["4", "2", "6"]
    least, most = (float(amount.removeprefix("$")) for amount in rows["together"][-2:])
    assert 0 < least < most
    assert shell.muster("runs", "list", "--json").data() == []


def test_the_envelope_of_a_plan_says_whether_a_budget_is_enough(shell: Shell) -> None:
    shell.write("desk.yaml", SUITE)
    data = shell.muster(*PLAN, "--budget", "0.000001", "--json").data()
    assert (data["cases"], data["skipped"], data["fits"]) == (3, 1, False)
    assert (data["agents"][MODEL]["calls"], data["judge"]["calls"], data["total"]["calls"]) == (4, 2, 6)
    assert data["total"]["least_usd"] < data["total"]["most_usd"]
    assert data["total"]["most_usd"] > data["agents"][MODEL]["most_usd"] > 0


def test_a_plan_says_when_no_maximum_exists(shell: Shell) -> None:
    shell.write("desk.yaml", SUITE)
    shell.write("muster.toml", '[agents.mine]\nkind = "program"\ncommand = ["cat"]\n')
    plan = ("plan", "desk.yaml", "--agent", "mine", "--evaluator", "rules", "--budget", "1")
    told = shell.muster(*plan)
    assert "no maximum exists for mine" in told.out
    data = shell.muster(*plan, "--json").data()
    assert (data["total"]["most_usd"], data["fits"], data["total"]["calls"]) == (None, False, 2)
