"""`muster generate` through its command: what it writes, what it leaves alone, and its exit codes."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muster.suites.generate.workload  # noqa: F401 - the workload is found by its name
from muster.cli.main import run as run_command
from muster.domain.errors import BadFile
from muster.suites.format.suite import open_suite
from muster.suites.generate.files import extended, new_suite, yaml_text

TOML = """
[agents.model]
kind = "program"
mode = "plain"
command = ["bash", "-c", "cat >/dev/null; echo asked >>asked.txt; cat reply.json"]
"""

SUITE = """\
# Our suite.
schema_version: 1
skill_or_agent: "geo"   # kebab-case
cases:
  # the first one
  - id: geo/capital
    input: { messages: [{ role: user, content: "What is the capital of France?" }] }
    expected:
      output:
        - kind: regex
          value: |
            Paris
"""
TABLES = """\
schema_version = 1
skill_or_agent = "geo"

[[cases]]
id = "geo/capital"
input.messages = [{ role = "user", content = "What is the capital of France?" }]
expected.output = [{ kind = "contains", value = "Paris" }]
"""
HEAD = "schema_version: 1\nskill_or_agent: geo\n"


def written(id_: str, text: str) -> dict[str, Any]:
    return {
        "id": id_,
        "description": f"Asks: {text}",
        "tags": ["smoke"],
        "messages": [{"role": "user", "content": text}],
        "output": [{"kind": "not_contains", "value": "sorry"}],
        "rubric": [{"id": "kind", "description": "Is kind", "weight": 1}],
    }


CASES = [written("Mars Weather", "How is the weather on Mars?\n\n  Tell: #all: \"of\" 'it'"), written("joke", "no")]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Generate = Callable[..., Result]


@pytest.fixture
def generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Generate:
    """Run the command in a folder whose model writes two cases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "muster.toml").write_text(TOML)
    (tmp_path / "reply.json").write_text(json.dumps({"cases": CASES}))

    def run(*arguments: str) -> Result:
        given_ = ["generate", *arguments, *(() if "--agent" in arguments else ("--agent", "model"))]
        code = run_command(given_)
        captured = capsys.readouterr()
        return Result(code=code, out=captured.out, err=captured.err)

    return run


def said(path: Path) -> dict[str, str]:
    return {case.id: case.messages[0].text for case in open_suite(path).cases()}


GENERATED = {"geo/mars-weather": CASES[0]["messages"][0]["content"], "geo/joke": "no"}
NEW = ("--skill", "geo", "--description", "Knows the world")


def test_a_new_suite_is_written_and_can_be_read(generate: Generate, tmp_path: Path) -> None:
    result = generate(*NEW, "--count", "2")
    assert (result.code, result.out.splitlines()[-1]) == (0, "wrote 2 cases to geo/cases.yaml")
    path = tmp_path / "geo" / "cases.yaml"
    assert said(path) == GENERATED
    case = next(iter(open_suite(path).cases()))
    assert (str(case.evaluator), case.tags, case.rubric[0].weight) == ("judge", ("smoke",), 1.0)
    assert [each.name for each in path.parent.iterdir()] == ["cases.yaml"]
    assert "rejected" not in result.err


def test_the_envelope_tells_everything(generate: Generate, tmp_path: Path) -> None:
    result = generate(*NEW, "--count", "2", "-o", "suites/geo", "--json", "--quiet")
    data = result.envelope["data"]
    assert (result.code, result.envelope["ok"], result.envelope["command"]) == (0, True, "generate")
    assert (data["asked"], data["generated"], data["skill"], data["rejected"]) == (2, 2, "geo", {})
    assert data["file"] == str(Path("suites/geo/cases.yaml"))
    assert [case["id"] for case in data["cases"]] == list(GENERATED)
    assert said(tmp_path / "suites" / "geo" / "cases.yaml") == GENERATED


def test_a_dry_run_prints_the_cases_and_writes_nothing(generate: Generate, tmp_path: Path) -> None:
    before = {"muster.toml", "reply.json"}
    result = generate(*NEW, "--count", "2", "--dry-run")
    assert result.code == 0
    assert "- id: geo/mars-weather" in result.out
    assert {path.name for path in tmp_path.iterdir()} - before == {".muster", "asked.txt"}
    (tmp_path / "pasted.yaml").write_text(HEAD + "cases:\n" + result.out)
    assert said(tmp_path / "pasted.yaml") == GENERATED


def test_a_suite_is_extended_and_what_was_there_stays(generate: Generate, tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    path = tmp_path / "geo" / "cases.yaml"
    path.write_text(SUITE)
    path.chmod(0o640)
    assert generate("--extend", "geo", "--count", "2").code == 0
    assert path.read_text().startswith(SUITE)
    assert said(path) == {"geo/capital": "What is the capital of France?"} | GENERATED
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["cases.yaml"]
    again = generate("--extend", "geo", "--count", "2", "--json")
    assert again.code == 1
    assert again.envelope["data"]["rejected"] == {"near-duplicate": 4}


def test_a_dry_run_changes_no_suite(generate: Generate, tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    (tmp_path / "geo" / "cases.toml").write_text(TABLES)
    result = generate("--extend", "geo", "--count", "2", "--dry-run")
    assert (result.code, (tmp_path / "geo" / "cases.toml").read_text()) == (0, TABLES)
    assert generate("--extend", "geo", "--count", "2").code == 0
    assert said(tmp_path / "geo" / "cases.toml") == {"geo/capital": "What is the capital of France?"} | GENERATED


def test_fewer_cases_than_asked_for_are_written_and_told(generate: Generate, tmp_path: Path) -> None:
    result = generate(*NEW, "--count", "3")
    assert result.code == 1
    assert "only 2 of 3 cases could be generated: case 1: it asks nearly the same as geo/mars-weather" in result.err
    assert "rejected: 4 near-duplicate" in result.err
    assert said(tmp_path / "geo" / "cases.yaml") == GENERATED


@pytest.mark.parametrize(
    ("reply", "why"), [("no idea", "holds no JSON"), ("", "gave no output"), ('{"cases": [{"id": 5}]}', "required")]
)
def test_nothing_generated_is_a_failure_and_leaves_no_file(
    generate: Generate, tmp_path: Path, reply: str, why: str
) -> None:
    (tmp_path / "reply.json").write_text(reply)
    result = generate(*NEW, "--json")
    assert (result.code, result.envelope["error"]["code"]) == (1, "nothing_generated")
    assert why in result.envelope["error"]["message"]
    assert result.envelope["data"]["rejected"] == {"unusable reply": 2}
    assert result.envelope["data"]["file"] is None
    assert not (tmp_path / "geo").exists()


def test_rejected_replies_are_counted_in_words(generate: Generate, tmp_path: Path) -> None:
    (tmp_path / "reply.json").write_text("no idea")
    assert "rejected: 2 replies that could not be used · 2 rounds" in generate(*NEW).err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--skill", "geo"),
        ("--skill", "geo", "--description", " "),
        ("--skill", "../geo", "--description", "d"),
        ("--extend", "there", "--skill", "geo", "--description", "d"),
        ("--extend", "there", "-o", "elsewhere"),
        ("--skill", "there", "--description", "d"),
        (*NEW, "-o", "muster.toml/below"),
        (*NEW, "--count", "0"),
        (*NEW, "--count", "201"),
    ],
)
def test_arguments_that_make_no_sense_cost_nothing(
    generate: Generate, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "cases.yaml").write_text(SUITE)
    assert generate(*arguments).code == 2
    assert not (tmp_path / "asked.txt").exists()


def test_an_agent_that_is_not_there_is_a_matter_of_configuration(generate: Generate, tmp_path: Path) -> None:
    assert generate(*NEW, "--agent", "nobody").code == 3


def test_a_folder_without_a_suite_cannot_be_extended(generate: Generate, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert generate("--extend", "empty").code in (2, 5)
    assert generate("--extend", "missing").code in (2, 5)
    assert not (tmp_path / "asked.txt").exists()


def test_a_suite_that_cannot_be_extended_costs_nothing(generate: Generate, tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    case = (
        "{id: geo/a, input: {messages: [{role: user, content: a}]}, expected: {output: [{kind: contains, value: a}]}}"
    )
    (tmp_path / "geo" / "cases.yaml").write_text(f"{HEAD}cases: [{case}]\n")
    result = generate("--extend", "geo")
    assert result.code == 2
    assert "none can be appended" in result.err
    assert not (tmp_path / "asked.txt").exists()


# ── text ──

ONE = [{"id": "geo/new", "input": {"messages": [{"role": "user", "content": "new"}]}}]
ITEM = "- id: geo/a\n  input: x\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"cases:\n{ITEM}", ""),
        (f"cases:   # all of them\n\n{ITEM}", ""),
        (f"cases:\n{ITEM}", "\n# about the bundle\nbundle_id: b\n"),
        (f"cases:\n{ITEM}", "bundle_id: b\n"),
        (f"cases:\n{ITEM}", "...\n"),
        (f"cases:\n{ITEM}  # still in the list\n", ""),
    ],
)
def test_new_cases_stand_at_the_end_of_the_list_and_nowhere_else(before: str, after: str) -> None:
    assert extended("cases.yaml", before + after, ONE) == before + yaml_text(ONE) + after


def test_new_cases_are_indented_like_those_that_are_there() -> None:
    found = extended("cases.yaml", "cases:\n    - id: geo/a\n      input: x", ONE)
    assert found.startswith("cases:\n    - id: geo/a\n      input: x\n    - id: geo/new\n      input:\n")


def test_the_ends_of_lines_stay_as_they_are() -> None:
    found = extended("cases.yaml", f"cases:\n{ITEM}".replace("\n", "\r\n"), ONE)
    assert found.count("\n") == found.count("\r\n") > 3


@pytest.mark.parametrize("text", ["", "cases: []\n", "cases: [a]\n", "other:\n- a\n", "cases:\n"])
def test_where_there_is_no_list_nothing_can_be_added(text: str) -> None:
    with pytest.raises(BadFile, match="none can be appended"):
        extended("cases.yaml", text, ONE)


TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="{\u2028\u2029\ufeff\ufffe\uffff"), max_size=30
)
PIECES = st.lists(st.sampled_from(["\n", "\t", " ", ": ", " #", "- ", "'", '"', "|", "&a", "yes", "1e3"]) | TEXT)


@given(text=PIECES.map("".join).filter(str.strip), suffix=st.sampled_from([".yaml", ".toml"]))
def test_whatever_is_said_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str
) -> None:
    case = {
        "id": "geo/new",
        "description": text,
        "input": {"messages": [{"role": "user", "content": text}]},
        "expected": {"output": [{"kind": "contains", "value": text}]},
    }
    folder = tmp_path_factory.getbasetemp()
    path = folder / f"read-back-{os.getpid()}{suffix}"
    path.write_text(extended(path.name, TABLES if suffix == ".toml" else SUITE, [case]), encoding="utf-8", newline="")
    found = list(open_suite(path).cases())
    assert [each.id for each in found] == ["geo/capital", "geo/new"]
    assert (found[1].messages[0].text, found[1].output[0].value) == (text, text)
    if suffix == ".yaml":
        path.write_text(new_suite("geo", [case]), encoding="utf-8", newline="")
        assert [each.messages[0].text for each in open_suite(path).cases()] == [text]
