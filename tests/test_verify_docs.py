"""What docs/VERIFY.md tells is true: its agents and thresholds are those that are shipped, and no key is left out."""

import json
import re
from pathlib import Path

import pytest

from muster.text.expressions import NAMES, parse, spell_mapping
from muster.text.logic import MAX_CHARACTERS
from muster.verify.declaration.declaration import read_declaration, shipped
from muster.verify.declaration.forms import AGENT, LIMITS, PARSERS, TOP
from muster.verify.declaration.verification import Kind, Limits, Shape
from muster.verify.sources.source import MAX_BYTES, MAX_LINE

DOCS = Path(__file__).parent.parent / "docs"
VERIFY = (DOCS / "VERIFY.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", VERIFY, re.DOTALL)


def section(title: str) -> str:
    return VERIFY.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_shipped_agents_and_their_thresholds_are_told_as_they_are() -> None:
    told = {
        re.sub("[`| ]", "", name): (int(wave), tuple(re.findall(r"`([^`]+)`", thresholds)))
        for name, wave, _, thresholds in rows("The built-in agents")
    }
    assert told == {agent.name: (agent.wave, agent.thresholds) for agent in shipped().agents}
    for model in {agent.model for agent in shipped().verifiers()}:
        assert f"`{model}`" in section("The built-in agents")


@pytest.mark.parametrize("keys", [TOP, AGENT, LIMITS, PARSERS, tuple(Kind), tuple(Shape)])
def test_every_key_and_every_choice_is_told(keys: tuple[str, ...]) -> None:
    text = section("verify.yaml")
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_example_of_a_file_is_valid(tmp_path: Path) -> None:
    (example,) = blocks("yaml")
    (tmp_path / "verify.yaml").write_text(example, encoding="utf-8")
    found = read_declaration(tmp_path / "verify.yaml")
    assert [agent.kind for agent in found.agents] == ["model", "model", "command", "command"]
    assert [agent.parser for agent in found.agents] == ["", "", "ruff", "pytest"]


def test_the_grammar_is_told_as_it_is() -> None:
    text = section("Thresholds")
    for line in re.findall(r"```\n(.*?)```", text, re.DOTALL)[0].splitlines():
        assert parse(line).text == line
    for name in NAMES:
        assert f"`{name}`" in text
    assert spell_mapping({"critical": 0, "score": 9.0, "coverage": 80, "parts": {"design": 8}}) == tuple(
        re.findall(r"`([a-z.]+ [<>]= \d+)`", text.partition("\nmeans ")[2].partition(".\n")[0])
    )
    assert f"at most {MAX_CHARACTERS} characters" in text


def test_the_numbers_are_told_as_they_are() -> None:
    usual = Limits()
    for number in (usual.chunk_bytes, usual.overlap_lines, usual.total_bytes):
        assert f"({number:,}" in section("verify.yaml")
    assert f"{MAX_BYTES:,} bytes" in section("Files")
    assert f"{MAX_LINE:,} characters" in section("Files")


def test_what_is_shown_as_a_reply_is_json() -> None:
    (reply,) = blocks("json")
    assert {"findings", "summary", "score", "parts"} == set(json.loads(reply))


def test_what_the_document_points_at_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", VERIFY):
        assert (DOCS / target).exists(), target
