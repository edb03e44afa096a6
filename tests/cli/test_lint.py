"""`muster lint`: what is doubtful in suites that are valid."""

from .shell import Shell
from .test_validate import BAD, DOUBTFUL, GOOD, write


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
        "[broken-check]",
        "[tag-spelling]",
        "[no-smoke-case]",
    ]
    envelope = shell.muster("lint", ".", "--json").envelope()
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "lint")
    assert [finding["code"] for finding in envelope["data"]["findings"]] == [
        "broken-check",
        "tag-spelling",
        "no-smoke-case",
    ]


def test_a_suite_that_is_not_valid_exits_2(shell: Shell) -> None:
    write(shell, "cases.yaml", BAD)
    result = shell.muster("lint", "cases.yaml")
    assert (result.code, result.out) == (2, "")
    assert "cases.yaml:5: greeter/one: tags: it must be a list" in result.err
    assert shell.muster("lint", "nowhere").code == 5
