"""verify.yaml as a whole: what is read from it, and everything that is wrong with it at once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.domain.errors import BadConfiguration, BadFile, NotFound
from muster.text.documents.declared import MAX_BYTES
from muster.verify.declaration.declaration import MAX_AGENTS, inspect, read_declaration
from muster.verify.declaration.forms import AGENT, TOP
from muster.verify.declaration.verification import Kind, Limits, Shape, Verifier
from tests.verify.declaration.agents import a_command, a_model, flaws, the_verifier, write, write_agents

WHOLE = """\
version: 1
model: anthropic/claude-sonnet-5-5
max_tokens: 4000
thresholds: ["critical + high == 0", score >= 9]
exclude: [data/*, "*.bin.py"]
limits: {chunk_bytes: 50000, overlap_lines: 0, total_bytes: 1000000}
x-shared: &shared {include: ["*.py", src/**]}
agents:
  - name: auditor
    <<: *shared
    wave: 2
    prompt: prompts/audit.md
    model: openai/gpt-5.1
    dispatch: batch
    shape: review
    schema: schema.json
    thresholds: {critical: 0, score: 9.0, parts: {design: 8}}
    max_tokens: 900
    temperature: 0
  - name: mypy
    kind: command
    command: [python3.12, -m, mypy, --strict, "{files}"]
    exits: [0, 1, 2]
    env: {MYPYPATH: src, PYTHONPATH: lib}
    timeout_secs: 300
    thresholds: []
"""

BROKEN = """\
version: 2
modle: x
thresholds: [critical == ]
limits:
  chunk_bytes: 1
  overlap: 3
agents:
  - name: one
    wave: 0
    prompt: a
    thresholds:
      - critical == 0
      - hihg == 0
  - nme: two
    prompt: b
  - name: one
    kind: command
    command: ruff check
    prompt: c
  - just text
"""


def test_everything_that_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path, "Audit.\n", "prompts/audit.md")
    write(tmp_path, '{"type": "object"}', "schema.json")
    found = read_declaration(write(tmp_path, WHOLE))
    assert (found.file, found.model, found.waves) == ((tmp_path / "verify.yaml").as_posix(), found.model, (1, 2))
    assert found.thresholds == ("critical + high == 0", "score >= 9")
    assert found.exclude == ("data/*", "*.bin.py")
    assert found.limits == Limits(chunk_bytes=50_000, overlap_lines=0, total_bytes=1_000_000)
    assert found.agents == (
        Verifier(
            name="auditor",
            wave=2,
            include=("*.py", "src/**"),
            prompt="Audit.",
            model="openai/gpt-5.1",
            dispatch="batch",
            shape=Shape.REVIEW,
            schema={"type": "object"},
            thresholds=("critical <= 0", "score >= 9", "parts.design >= 8"),
            max_tokens=900,
            temperature=0,
        ),
        Verifier(
            name="mypy",
            kind=Kind.COMMAND,
            command=("python3.12", "-m", "mypy", "--strict", "{files}"),
            parser="mypy",
            exits=(0, 1, 2),
            environment={"MYPYPATH": "src", "PYTHONPATH": "lib"},
            timeout=300,
            max_tokens=4000,
        ),
    )


def test_everything_that_is_wrong_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, BROKEN)
    found = flaws(path)
    assert [line for line, _ in found] == [1, 2, 3, 5, 6, 9, 13, 14, 14, 16, 18, 19, 20]
    told = dict(found)
    assert told[1] == "version: must be 1, not '2'"
    assert told[2] == "modle: unknown key; did you mean model?"
    assert told[3].startswith("thresholds[0]: 'critical ==' is not a valid threshold: at character 12: ")
    assert told[5] == "limits.chunk_bytes: must be at least 1000"
    assert told[6] == "limits.overlap: unknown key; did you mean overlap_lines?"
    assert told[9] == "wave: must be at least 1"
    assert told[13].startswith(
        "thresholds[1]: 'hihg == 0' is not a valid threshold: at character 1: unknown name 'hihg' (did you"
    )
    assert {message for line, message in found if line == 14} == {
        "name: missing",
        "nme: unknown key; did you mean name?",
    }
    assert told[16] == "name: duplicate name of an agent"
    assert told[18] == "command: must be a list of strings, [program, argument, …]; no shell is used"
    assert told[19] == "prompt: only for agents of the kind model; this one is of the kind command"
    assert told[20] == "must be a mapping"
    with pytest.raises(BadFile) as caught:
        read_declaration(path)
    assert (caught.value.line, caught.value.message.count("\n")) == (1, 12)
    assert f"\n{path}:9: one: wave: must be at least 1\n" in caught.value.message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("- a\n", 1, "the file must be a mapping"),
        ("model: a\n", 1, "agents: missing"),
        ("\nagents: []\n", 2, "agents: is empty: at least one agent is needed"),
        ("agents: {a: {}}\n", 1, "agents: must be a list of agents"),
        ("agents:\n\t- a\n", 2, "not valid YAML"),
        ("agents: [\n", 2, "not valid YAML"),
        ("agents: [{name: a, prompt: b}]\ncases: []\n", 2, "cases: unknown key"),
        ("agents: [{name: a, prompt: b}]\nschema_version: 1\n", 2, "schema_version: unknown key"),
        ("agents: [{name: a, prompt: b}]\nlimits: 5\n", 2, "limits: must be a mapping"),
        ("agents: [{name: a, prompt: b}]\nthresholds: 5\n", 2, "thresholds[0]: '5' is not a valid threshold"),
        ("agents: [{name: a, prompt: b}]\nthresholds: {x: 5}\n", 2, "thresholds.x: 'x' is not a known metric"),
        ("agents:\n- {name: a, prompt: b, include: 5}\n", 2, "include: must be a glob or a list of globs, such as"),
        ("agents:\n- {name: a, prompt: b, include: [true]}\n", 2, "include: must be a glob or a list of globs"),
        ("exclude: 5\nagents: [{name: a, prompt: b}]\n", 1, "exclude: must be a glob or a list of globs"),
        ("agents: [{name: a, prompt: b, model: 5}]\n", 1, "model: must be a string; put it in quotes"),
        ("agents: [{name: a, prompt: b}, {name: a, prompt: b}]\n", 1, "name: duplicate name of an agent"),
    ],
)
def test_a_file_that_declares_nobody_rightly_is_refused(tmp_path: Path, text: str, line: int, message: str) -> None:
    ((where, told),) = flaws(write(tmp_path, text))
    assert where == line
    assert told.startswith(message)


def test_a_file_that_is_missing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no such file: .*verify\.yaml"):
        read_declaration(tmp_path / "verify.yaml")


def test_a_file_of_another_kind_or_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    ((_, message),) = flaws(write(tmp_path, "{}", "verify.json"))
    assert message == "a file with verification agents must be one of .yaml, .yml, .toml"
    ((_, message),) = flaws(write(tmp_path, "#" * (MAX_BYTES + 1)))
    assert message.startswith("larger than 4,000,000 bytes")
    many = (a_model(f"a{index}") for index in range(MAX_AGENTS + 1))
    assert flaws(write_agents(tmp_path, *many)) == [(2, "agents: has more than 1,000 agents")]
    (tmp_path / "verify.yml").mkdir()
    assert flaws(tmp_path / "verify.yml") == [(None, "cannot be read: Is a directory")]


def test_toml_says_the_same_with_the_lines_of_the_agents(tmp_path: Path) -> None:
    text = """model = "m"

[[agents]]
name = "a"
prompt = "Look."

[[agents]]
name = "b"
wave = 2
prompt = "Look."
"""
    found = read_declaration(write(tmp_path, text, "verify.toml"))
    assert [(agent.name, agent.wave) for agent in found.agents] == [("a", 1), ("b", 2)]
    path = write(tmp_path, text.replace("wave = 2", "wave = 0").replace("model", "modle"), "verify.toml")
    assert flaws(path) == [(1, "modle: unknown key; did you mean model?"), (7, "wave: must be at least 1")]


def test_the_model_is_ones_own_or_the_given_one_or_the_files(tmp_path: Path) -> None:
    agents = (a_model("a", model="own"), a_model("b"), a_command("c"))
    with_model = read_declaration(write_agents(tmp_path, *agents, model="top"))
    without_model = read_declaration(write_agents(tmp_path, *agents))

    def models(found: tuple[Verifier, ...]) -> list[str]:
        return [verifier.model for verifier in found]

    assert models(with_model.verifiers()) == ["own", "top", ""]
    assert models(with_model.verifiers("given", otherwise="other")) == ["own", "given", ""]
    assert models(with_model.verifiers(otherwise="other")) == ["own", "top", ""]
    assert models(without_model.verifiers(otherwise="other")) == ["own", "other", ""]
    assert models(replace(without_model, fallback="last").verifiers(otherwise="other")) == ["own", "other", ""]
    assert models(replace(without_model, fallback="last").verifiers()) == ["own", "last", ""]
    with pytest.raises(BadConfiguration, match="no model given for agent b"):
        without_model.verifiers()


def test_the_most_tokens_are_ones_own_or_the_files_or_those_of_the_model(tmp_path: Path) -> None:
    assert the_verifier(tmp_path, a_model(max_tokens=5), max_tokens=7).max_tokens == 5
    assert the_verifier(tmp_path, a_model(), max_tokens=7).max_tokens == 7
    assert the_verifier(tmp_path, a_model(), max_tokens=8000).max_tokens == 8000
    assert the_verifier(tmp_path, a_model()).max_tokens is None


words = st.sampled_from([*AGENT, *TOP, "x", "{files}", "critical == 0", "a.md", "..", "command", ""])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(words, below, max_size=5),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(agents=st.lists(st.dictionaries(words, anything, max_size=6), max_size=3), top=st.dictionaries(words, anything))
def test_whatever_is_written_is_read_or_told(tmp_path: Path, agents: list[object], top: dict[str, object]) -> None:
    found = inspect(write(tmp_path, json.dumps({"agents": agents, **top})))
    assert (found.declaration is None) == bool(found.flaws)
