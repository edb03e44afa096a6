"""What docs/SETTINGS.md tells is true: every key of muster.toml with its default, and no other."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec import NODEFAULT, structs

from muster.settings import load_settings, sections, service
from muster.settings.file import BudgetSection, Configuration, VerifySection, WorkloadsSection
from muster.settings.gateway import GatewaySection

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
PARTS: dict[str, tuple[type, type | None]] = {  # the heading, its section, and the one whose keys are told elsewhere
    "[budget]": (BudgetSection, None),
    "[workloads]": (WorkloadsSection, None),
    "[verify]": (VerifySection, None),
    "[pool]": (sections.PoolSection, None),
    "[[slots]]": (sections.SlotSection, None),
    "[[tokens]]": (service.TokenSection, None),
    "[serve]": (service.ServeSection, None),
    "[gateway]": (GatewaySection, None),
    "[hooks]": (service.HooksSection, None),
    "[library]": (service.LibrarySection, None),
    "[store]": (service.StoreSection, None),
    "[battles]": (sections.BattlesSection, None),
    "[observability]": (sections.ObservabilitySection, None),
    'Every kind but "human"': (sections._Agent, None),
    'kind = "anthropic", "openai" or "scripted"': (sections.ModelSection, sections._Agent),
    "Programs, services, functions and CLI agents": (sections._Own, sections._Agent),
    "Programs and CLI agents": (sections._Process, sections._Own),
    'kind = "program"': (sections.ProgramSection, sections._Process),
    'kind = "http"': (sections.HttpSection, sections._Own),
    'kind = "python"': (sections.PythonSection, sections._Own),
    'kind = "claude-code"': (sections.ClaudeSection, sections._Process),
    'kind = "cli"': (sections.CliSection, sections._Process),
    'kind = "human"': (sections.HumanSection, None),
    "price": (sections.PriceSection, None),
}


def rows(heading: str) -> dict[str, str]:
    """Return the keys under a heading, each with what stands for its default."""
    part = re.split(rf"^##+ {re.escape(heading)}$", PAGE, flags=re.MULTILINE)[1].split("\n#")[0]
    return {key: default.strip() for key, default in re.findall(r"^\| `(\w+)` \|([^|]*)\|", part, re.MULTILINE)}


def keys(section: type) -> dict[str, Any]:
    """Return the keys of a section with their defaults; NODEFAULT for one that must be given."""
    found = {}
    for field in structs.fields(section):
        factory = field.default_factory
        found[field.encode_name] = field.default if factory is NODEFAULT else factory()
    return found


def spelled(default: Any) -> Any:
    if default is None:
        return "–"
    if default is NODEFAULT:
        return ""
    return list(default) if isinstance(default, tuple) else str(default) if isinstance(default, Path) else default


@pytest.mark.parametrize("heading", PARTS)
def test_every_key_is_told_with_its_default_and_no_other(heading: str) -> None:
    section, below = PARTS[heading]
    known = {name: value for name, value in keys(section).items() if below is None or name not in keys(below)}
    told = rows(heading)
    assert list(told) == list(known)
    for name, default in known.items():
        cell = told[name]
        assert (tomllib.loads(f"x = {cell.strip('`')}")["x"] if cell.startswith("`") else cell) == spelled(default), (
            name
        )


def test_no_section_and_no_kind_is_left_out() -> None:
    named = {section for section, _ in PARTS.values()}
    assert set(sections.KINDS.values()) <= named
    assert {f"[{name}]" for name in Configuration.__struct_fields__} == {
        "[budget]",
        "[workloads]",
        "[verify]",
        "[pool]",
        "[slots]",
        "[tokens]",
        "[serve]",
        "[gateway]",
        "[hooks]",
        "[library]",
        "[store]",
        "[battles]",
        "[observability]",
        "[agents]",
    }
    assert all(f'"{kind}"' in PAGE for kind in sections.KINDS)


def test_the_example_is_read_and_what_the_page_points_at_is_there(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "muster.toml").write_text(example)
    assert load_settings(folder=tmp_path, environment={}).run_cap == 5_000_000
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
