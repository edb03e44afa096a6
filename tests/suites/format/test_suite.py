"""Suites are opened, streamed and examined."""

import tracemalloc
from pathlib import Path

import msgspec
import pytest

from muster.domain.errors import BadFile, NotFound
from muster.suites.format.suite import examine, open_suite
from muster.suites.values.case import Case
from muster.text.document_tree import MAX_FLAWS, Flaw
from tests.suites.format.suites import HEAD, a_case, flaws, sound, the_flaw, write, write_suite

ONE = "- id: greeter/{0}\n  input: {{messages: [{{role: user, content: hi}}]}}\n  expected: {{output: [{1}]}}\n"
CHECK = "{kind: contains, value: hi}"


def test_a_suite_says_who_it_tests_and_with_which_prompt(tmp_path: Path) -> None:
    write(tmp_path, "Be kind.\n", "prompt.md")
    suite = open_suite(write_suite(tmp_path, a_case(), bundle_id="a/b", risk_tier="low"))
    assert (suite.name, suite.prompt) == ("greeter", "Be kind.\n")
    assert suite.bundle == {"bundle_id": "a/b", "risk_tier": "low"}


def test_the_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_suite(tmp_path, a_case())
    assert open_suite(path).file == str(path)
    monkeypatch.chdir(tmp_path.parent)
    short = f"{tmp_path.name}/cases.yaml"
    assert open_suite(path).file == open_suite(Path(short)).file == short
    assert [case.file for case in open_suite(path).cases()] == [short]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_prompt_is_none(tmp_path: Path, text: str) -> None:
    write(tmp_path, text, "prompt.md")
    assert open_suite(write_suite(tmp_path, a_case())).prompt is None


def test_a_prompt_that_cannot_be_read_is_a_flaw_of_its_own_file(tmp_path: Path) -> None:
    write(tmp_path, b"a\n\xff", "prompt.md")
    path = write_suite(tmp_path, a_case())
    (flaw,) = examine(path).flaws
    assert (Path(flaw.file).name, flaw.line) == ("prompt.md", 2)
    with pytest.raises(BadFile, match="not UTF-8"):
        open_suite(path)


def test_a_prompt_is_no_way_out_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "greeter").mkdir()
    path = write_suite(project / "greeter", a_case())
    (project / "greeter" / "prompt.md").symlink_to(write(project, "Shared.", "shared.md"))
    assert open_suite(path).prompt == "Shared."
    (project / "greeter" / "prompt.md").unlink()
    (project / "greeter" / "prompt.md").symlink_to(write(tmp_path, "secret", "secret.txt"))
    assert "leads out of the project" in the_flaw(path)


def test_a_missing_suite_is_not_found(tmp_path: Path) -> None:
    for act in (open_suite, examine):
        with pytest.raises(NotFound, match=r"no such file: .*no\.yaml"):
            act(tmp_path / "no.yaml")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "cases.yaml"
    folder.mkdir()
    assert "not a regular file" in the_flaw(folder) or "cannot be read" in the_flaw(folder)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert the_flaw(tmp_path / "pipe.yaml") == "not a regular file"
    assert the_flaw(write(tmp_path, "", "suite.json")) == "the name of a suite must end in one of .yaml, .yml, .toml"


def test_a_case_is_given_before_a_later_one_is_looked_at(tmp_path: Path) -> None:
    cases = open_suite(write_suite(tmp_path, a_case(), a_case("two", tags="x"))).cases()
    assert next(cases).id == "greeter/one"
    with pytest.raises(BadFile, match="greeter/two: tags: must be a list") as caught:
        next(cases)
    assert caught.value.line == 5


def test_a_suite_can_be_read_again(tmp_path: Path) -> None:
    suite = open_suite(write_suite(tmp_path, a_case(), a_case("two")))
    assert list(suite.cases()) == list(suite.cases())


def test_a_head_that_does_not_fit_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="schema_version") as caught:
        open_suite(write_suite(tmp_path, a_case(), schema_version=3))
    assert (caught.value.line, caught.value.exit_code) == (2, 2)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write_suite(tmp_path, a_case())
    suite = open_suite(path)
    path.write_text("cases: 5\n")
    with pytest.raises(BadFile, match="cases must be a list"):
        list(suite.cases())


def test_all_flaws_are_told_up_to_a_bound(tmp_path: Path) -> None:
    bad = [a_case(str(index), tags="x") for index in range(3)]
    found = examine(write_suite(tmp_path, a_case(), *bad))
    assert (found.cases, len(found.flaws)) == (1, 3)
    many = examine(write_suite(tmp_path, *(a_case(str(index), tags="x") for index in range(300))))
    assert len(many.flaws) == MAX_FLAWS + 1
    assert "stopped after" in many.flaws[-1].message


def test_doubts_are_bounded_and_stop_nothing(tmp_path: Path) -> None:
    expected = {"output": [{"kind": "regex", "value": ""}]}
    found = sound(write_suite(tmp_path, *(a_case(str(index), expected=expected) for index in range(150))))
    assert (found.cases, len(found.doubts)) == (150, MAX_FLAWS)


def test_a_flaw_is_told_like_a_compiler_does() -> None:
    whole = Flaw(file="a.yaml", line=3, case="x/y", message="tags: must be a list")
    assert str(whole) == "a.yaml:3: x/y: tags: must be a list"
    assert whole.error().message == str(whole)
    assert str(Flaw(file="a.yaml", message="it is empty")) == "a.yaml: it is empty"


def test_cases_survive_storing(tmp_path: Path) -> None:
    write(tmp_path, '{"a": "b"}\n', "rows.jsonl")
    tools = [{"name": "t", "results": [{"result": {"x": "{{a}}"}}]}]
    said = {"messages": [{"role": "user", "content": "{{a}}"}], "tools": tools, "context": {"k": [1, 2.5, None]}}
    path = write_suite(tmp_path, a_case(input=said, dataset="rows.jsonl"), a_case("plain", input=said))
    for case in open_suite(path).cases():
        stored = msgspec.json.encode(msgspec.to_builtins(case))
        assert msgspec.convert(msgspec.json.decode(stored), Case) == case


def test_the_same_in_yaml_of_all_styles(tmp_path: Path) -> None:
    block = HEAD + "cases:\n" + ONE.format("one", CHECK)
    as_json = write_suite(tmp_path, a_case(), name="json.yaml")
    assert sound(write(tmp_path, block)).cases == sound(as_json).cases == 1
    assert sound(write(tmp_path, block.replace("\n", "\r\n"))).cases == 1


def test_memory_does_not_grow_with_the_number_of_cases(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    long = f"{{kind: contains, value: {'x' * 50_000}}}"
    path.write_text(HEAD + "cases:\n" + "".join(ONE.format(index, long) for index in range(200)))
    next(open_suite(path).cases())  # so that everything is loaded
    tracemalloc.start()
    try:
        assert sum(1 for _ in open_suite(path).cases()) == 200
        assert tracemalloc.get_traced_memory()[1] < 2_000_000  # the file has ten million bytes
    finally:
        tracemalloc.stop()


def test_flaws_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = HEAD + "cases:\n" + ONE.format("one", "") + ONE.format("two", CHECK) + ONE.format("two", CHECK)
    assert [(line, case) for line, case, _ in flaws(write(tmp_path, text))] == [(4, "greeter/one"), (10, "greeter/two")]
