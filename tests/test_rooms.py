"""The rooms and the arrows between them: every import counts, hidden ones too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster

SOURCE = Path(muster.__file__).parent

# Who may import what; "x.base" stands for that one module. A room always may import itself.
ARROWS: dict[str, set[str]] = {
    "domain": set(),
    "shapes": {"domain"},
    "formats": {"domain", "shapes"},
    "checks": {"domain", "shapes"},
    "agents": {"domain", "shapes"},
    "store": {"domain"},
    "sim": {"domain"},
    "settings": {"domain"},
    "engine": {"domain", "store.base", "agents.base"},
    "slots": {"domain", "agents.base", "agents.processes", "store.base"},
    "judges": {"domain", "shapes", "checks", "engine.context"},
    "workloads": {"domain", "shapes", "formats", "checks", "judges", "engine.context", "engine.workload", "slots.base"},
    "reports": {"domain", "formats", "checks", "judges.retelling", "store.base"},
    "api": {"domain", "formats", "engine", "reports", "slots.base", "store.base"},
    "mcp": {"domain", "formats", "engine", "reports", "slots.base", "store.base"},
    "app": {
        "domain", "shapes", "formats", "checks", "agents", "store", "sim", "settings", "engine", "slots", "judges",
        "workloads", "reports",
    },
    "cli": {"app", "settings", "domain", "formats", "reports", "api", "mcp", "sim"},
    "testing": {"domain", "agents.base", "agents.scripted", "store.base", "slots.base", "sim"},
    "__init__": {"app", "domain.call", "domain.errors", "engine.context", "engine.workload"},
    "__main__": {"cli"},
}  # fmt: skip

# Written as a user would write them: through the package's own names.
USERS = {"cli.demo_work", "cli.demo_child"}

OPTIONAL = {"psycopg": "store", "bullmq": "engine", "claude_agent_sdk": "agents", "mcp": "mcp"}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__" or len(parts) == 1), path


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names: imports at any depth, under TYPE_CHECKING, and by importlib."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they point"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.split(".")
            if parts[0] == "muster" and len(parts) > 1 and parts[1] in ARROWS:
                yield node.value


MODULES = list(modules())


def allowed(room: str, target: str) -> bool:
    """Whether a room may import `muster.target`."""
    if target.split(".")[0] == room:
        return True
    return any(target == arrow or target.startswith(arrow + ".") for arrow in ARROWS[room])


@pytest.mark.parametrize(("module", "path"), MODULES, ids=[module for module, _ in MODULES])
def test_a_module_imports_only_what_its_room_may(module: str, path: Path) -> None:
    room = module.split(".")[0]
    assert room in ARROWS, f"{module}: there is no room {room}"
    for name in imports(path):
        assert name != "muster" or module in USERS, f"{module}: import from the room itself"
        if name.startswith("muster.") and name != "muster.__version__":
            target = name.removeprefix("muster.")
            assert allowed(room, target), f"{module} may not import {name}"


@pytest.mark.parametrize(("module", "path"), MODULES, ids=[module for module, _ in MODULES])
def test_optional_packages_stay_in_their_adapters(module: str, path: Path) -> None:
    for name in imports(path):
        home = OPTIONAL.get(name.split(".")[0])
        assert home is None or module.split(".")[0] == home, f"{module} may not import {name}"


def test_there_is_no_room_without_a_use() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(ARROWS)
    assert not {"utils", "util", "helpers", "common"} & rooms
    assert all(any((SOURCE / room).rglob("*.py")) for room in rooms)


def test_the_environment_is_read_in_one_place() -> None:
    readers = {
        module
        for module, path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    }
    # The scripted CLI agent is a program of its own, which Muster starts like any other.
    assert readers <= {"settings", "sim.cli_agent.__main__"}


def test_a_forbidden_import_would_be_noticed() -> None:
    assert not allowed("domain", "store.base.Store")
    assert not allowed("engine", "store.sqlite.open_sqlite")
    assert not allowed("workloads", "engine.calls.CallPath")
    assert allowed("engine", "store.base.Store")
    assert allowed("workloads", "engine.context.Context")
