"""`muster lint`: what is doubtful in suites that are valid."""

from .shell import Shell
from .test_validate import BAD, DOUBTFUL, GOOD, write

LENIENT = """\
- id: greeter/lenient
  input: {messages: [{role: user, content: hi}]}
  evaluator_config: {effectiveness_threshold: 0}
- id: greeter/heavy
  input: {messages: [{role: user, content: hi}]}
  expected:
    rubric:
    - {id: polite, description: polite, weight: 0.95, auto_check: {kind: contains, value: hi}}
    - {id: right, description: right, weight: 0.05, auto_check: {kind: contains, value: 42}}
"""


def test_a_clean_suite_exits_0(shell: Shell) -> None:
    write(shell, "cases.yaml", GOOD)
    result = shell.muster("lint", "cases.yaml")
    assert (result.code, result.out, result.err) == (0, "cases.yaml: 1 case, clean\n", "")
    assert shell.muster("lint", "cases.yaml", "--json").data() == {"suites": ["cases.yaml"], "findings": []}


def test_findings_exit_1(shell: Shell) -> None:
    write(shell, "cases.yaml", DOUBTFUL.replace("[smoke]", "[Smoke]"))
    result = shell.muster("lint", ".")
    assert result.code == 1
    assert [line.rpartition(" ")[2] for line in result.out.splitlines()] == [
        "[empty-check]",
        "[tag-spelling]",
        "[no-smoke-case]",
    ]
    envelope = shell.muster("lint", ".", "--json").envelope()
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "lint")
    assert [finding["code"] for finding in envelope["data"]["findings"]] == [
        "empty-check",
        "tag-spelling",
        "no-smoke-case",
    ]


def test_a_suite_that_is_not_valid_exits_2(shell: Shell) -> None:
    write(shell, "cases.yaml", BAD)
    result = shell.muster("lint", "cases.yaml")
    assert (result.code, result.out) == (2, "")
    assert "cases.yaml:5: greeter/one: tags: must be a list" in result.err
    assert shell.muster("lint", "nowhere").code == 5


def test_what_is_lenient_is_told_beside_what_is_wrong(shell: Shell) -> None:
    write(shell, "bad.yaml", BAD.replace("  tags:", "  threshold: 0\n  tags:") + LENIENT)
    write(shell, "fine.yaml", GOOD.replace("smoke", "Smoke"))
    result = shell.muster("lint", ".")
    assert (result.code, "tags: must be a list" in result.err) == (2, True)
    assert [line.rpartition(" ")[2] for line in result.out.splitlines()] == [
        "[zero-threshold]",
        "[zero-threshold]",
        "[dominant-item]",
        "[tag-spelling]",
        "[no-smoke-case]",
    ]
    data = shell.muster("lint", ".", "--json").envelope()["data"]
    assert (len(data["flaws"]) > 0, len(data["findings"])) == (True, 5)
