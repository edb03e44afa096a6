"""`muster schema`: what we accept fits the schemas for editors, and misspelt names do not."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from muster.settings import load_settings
from muster.text.document_tree import plain_value
from muster.text.documents.yaml_reader import YamlFile

from .suite_home import Home

ROOT = Path(__file__).parent.parent.parent
SUITE = """
schema_version: 1
skill_or_agent: order-desk
x-note: mine
variables: {city: 4711}
cases:
  - id: order-desk/one
    description:
    accepts: cut
    agents: sim/echo
    dataset: rows.csv
    input:
      context: {anything: [goes]}
      messages: [{role: model, content: hello}, {role: user, content: 42}]
    expected:
      tool_sequence: [{name: find, args_match: {free: 1}}]
      output: [{kind: contains, value: 1.10}]
      rubric: [{id: kind, weight: 2, critical: true}]
    evaluator_config: {evaluator: rules, effectiveness_threshold: 0.5}
"""
VERIFY = """
version: 1
exclude: "*.lock"
agents:
  - {name: auditor, prompt: look, thresholds: {high: 0}, include: "*.py"}
  - {name: ruff, kind: command, command: [ruff], parser: ruff, exits: 0, timeout_secs: 60}
"""
TOML = """
[budget]
run_usd = 5
[workloads]
import = ["mine"]
[verify]
pending = "p"
[agents.a]
kind = "openai"
price = { input = 1, output = 2.5 }
[agents.b]
kind = "cli"
command = ["x", "{prompt}"]
env = { A = "1" }
"""


WORKLOAD = """
from dataclasses import dataclass
import muster

@dataclass
class Spec:
    tickets: list[str]

@muster.workload("schema-triage")
async def triage(ctx: muster.Context, spec: Spec) -> list[str]:
    return spec.tickets
"""


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    return Home(tmp_path, capsys)


def schema_of(home: Home, what: str) -> dict[str, Any]:
    found = home.muster("schema", what)
    assert found.code == 0, found.err
    schema: dict[str, Any] = json.loads(found.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def refused(schema: dict[str, Any], value: Any) -> bool:
    return not jsonschema.Draft202012Validator(schema).is_valid(value)


def changed(text: str, old: str, new: str) -> Any:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tool_sequence", "tool_sequnce"),
        ("critical: true", "critcal: true"),
        ("effectiveness_threshold: 0.5", "effectiveness_threshold: 2"),
        ("kind: contains", "kind: contians"),
        ("evaluator_config", "evaluator_cfg"),
        ("schema_version: 1\n", ""),
        ("name: find", "tol: find"),
        ("weight: 2", "weight: heavy"),
    ],
)
def test_a_suite_that_we_read_fits_and_a_misspelt_one_does_not(home: Home, old: str, new: str) -> None:
    schema = schema_of(home, "suite")
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(SUITE))
    assert refused(schema, yaml.safe_load(changed(SUITE, old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("thresholds", "thresolds"),
        ("parser: ruff", "parser: rough"),
        ("exits: 0", "exits: 256"),
        ("version: 1", "v: 1"),
    ],
)
def test_a_verify_yaml_that_we_read_fits_and_a_misspelt_one_does_not(home: Home, old: str, new: str) -> None:
    schema = schema_of(home, "verify")
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(VERIFY))
    assert refused(schema, yaml.safe_load(changed(VERIFY, old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("retries: 2", "retires: 2"),
        ("retries: 2", "retries: -1"),
        ("parallel:", "paralel:"),
        ("for_each:", "foreach:"),
        ("default: friendly", "defualt: friendly"),
        ('["test", "-s", "NOTES.md"]', "[]"),
        ("name: release-notes", "x-name: release-notes"),
    ],
)
def test_a_chain_that_we_read_fits_and_a_misspelt_one_does_not(home: Home, old: str, new: str) -> None:
    schema = schema_of(home, "chain")
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/CHAINS.md").read_text(), re.DOTALL)
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))
    assert refused(schema, yaml.safe_load(changed(text, old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("run_usd = 5", "run_usd = 'five'"),
        ('kind = "openai"', 'kind = "opnai"'),
        ("output = 2.5", "outptu = 2.5"),
        ("[budget]", "[budgte]"),
        ('pending = "p"', 'pendnig = "p"'),
        ('command = ["x", "{prompt}"]', 'url = "http://x"'),
    ],
)
def test_a_muster_toml_that_we_read_fits_and_a_misspelt_one_does_not(
    home: Home, tmp_path: Path, old: str, new: str
) -> None:
    schema = schema_of(home, "toml")
    (tmp_path / "muster.toml").write_text(TOML)
    load_settings(folder=tmp_path, environment={})
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(TOML))
    assert refused(schema, tomllib.loads(changed(TOML, old, new)))


def as_read(path: Path) -> Any:
    """Return a suite as our reader of YAML 1.2 reads it."""
    file = YamlFile(path)
    head: Any = plain_value(file.head())
    return head | {"cases": [plain_value(case) for case, _ in file.cases()]}


def test_every_example_fits(home: Home) -> None:
    schemas = {what: jsonschema.Draft202012Validator(schema_of(home, what)) for what in ("suite", "verify", "toml")}
    tomls = [*(ROOT / "examples").rglob("muster.toml"), *(ROOT / "src").rglob("muster.toml")]
    suites = [path for path in (ROOT / "examples").rglob("*.yaml") if "schema_version" in path.read_text()]
    assert len(tomls) > 3
    assert len(suites) > 2
    for path in tomls:
        schemas["toml"].validate(tomllib.loads(path.read_text()))
    for path in [*suites, ROOT / "src/muster/cli/demo/suite/cases.yaml"]:
        schemas["suite"].validate(as_read(path))
    declared = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/VERIFY.md").read_text(), re.DOTALL)
    whole = [text for text in declared if re.search(r"^agents:", text, re.MULTILINE)]
    assert whole
    for text in whole:
        schemas["verify"].validate(yaml.safe_load(text))


def test_another_name_is_refused_with_those_there_are(home: Home) -> None:
    found = home.muster("schema", "suites", "--json")
    told = found.error()["message"]
    assert found.code == 2
    assert told.startswith("the kind must be one of suite, verify, chain, council, toml")
    assert told.endswith("not 'suites'. Did you mean 'suite'?")


def test_a_workload_of_the_project_has_the_schema_of_its_spec(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.folder / "schema_mine.py").write_text(WORKLOAD)
    (home.folder / "muster.toml").write_text('[workloads]\nimport = ["schema_mine"]\n')
    monkeypatch.chdir(home.folder)
    schema = schema_of(home, "schema-triage")
    assert schema["required"] == ["tickets"]
    assert refused(schema, {"tickets": [3]})
    assert schema["returns"]["items"] == {"type": "string"}
