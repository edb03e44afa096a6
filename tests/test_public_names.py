"""What the package offers is declared once, can be loaded, and is what the documentation and the examples use."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import muster
from muster.domain import errors
from tests.test_rooms import allowed

ROOT = Path(__file__).parent.parent
DECLARED = Path(muster.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
NAMES = {
    name: (module, home) for module, home, name in re.findall(r"^from (\S+) import (\w+) as (\w+)", DECLARED, re.M)
}
PAGES = sorted(path for path in (*(ROOT / "docs").glob("*.md"), ROOT / "README.md"))
PUBLIC_MODULES = {"muster", "muster.client", "muster.sync", "muster.testing"}
PROGRAMS = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_declared_name_is_loaded_and_nothing_else_is_public() -> None:
    assert vars(muster)["__getattr__"]("__all__") == sorted(NAMES)
    for name, (module, home) in NAMES.items():
        value = getattr(muster, name)
        found = sys.modules[f"muster.{name}"] if module == "muster" else getattr(importlib.import_module(module), home)
        assert found is value
    assert dir(muster) == sorted([*NAMES, "__version__"])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = vars(muster)["__getattr__"]("nothing")


def test_the_declaration_has_nothing_that_is_not_loaded() -> None:
    lines = ast.parse(DECLARED).body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    others = [ast.unparse(line) for line in lines[1:] if not isinstance(line, ast.ImportFrom)]
    assert len(imports) == len(NAMES)
    assert all(alias.asname == alias.name for line in imports for alias in line.names)
    assert others == ["__version__: str"]


def test_what_is_public_comes_from_rooms_that_the_package_may_import() -> None:
    places = {name if module == "muster" else module.removeprefix("muster.") for name, (module, _) in NAMES.items()}
    wrong = {place for place in places if not allowed("__init__", place)}
    assert wrong == set()


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    program = "import sys, muster; print([name for name in sys.modules if name.startswith('muster.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "[]\n", done.stderr


def test_every_name_can_be_imported_with_a_star() -> None:
    names: dict[str, object] = {}
    exec("from muster import *", names)
    assert names.keys() >= NAMES.keys()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_names_only_what_is_public(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\bmuster\.([A-Z]\w+)", text)) | set(re.findall(r"`muster\.([a-z]\w+)\(", text))
    assert named - {"client"} - NAMES.keys() == set()
    for program in PROGRAMS.findall(text):
        for module, names in imports_of_muster(program):
            assert module in PUBLIC_MODULES, module
            assert names <= set(NAMES if module == "muster" else public_names(module))


def imports_of_muster(program: str) -> list[tuple[str, set[str]]]:
    """Return what a program of the documentation imports of us, by module."""
    lines = re.findall(r"^\s*from (muster[\w.]*) import (.+)$", program, re.MULTILINE)
    lines += [(name, "") for name in re.findall(r"^\s*import (muster[\w.]*)", program, re.MULTILINE)]
    return [(module, set(re.findall(r"\w+", names))) for module, names in lines]


def public_names(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return names


# Raised where only the engine catches them, or never to a program.
INTERNAL_ERRORS = {"KeyTaken", "Respelled", "Undecodable", "OutOfTime", "AwaitsSignal", "BatchOverdue", "BatchOpen"} | {
    "BatchLost", "WireError", "NameTaken",
}  # fmt: skip


def test_every_error_that_a_program_may_catch_is_public() -> None:
    tree = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert tree - INTERNAL_ERRORS == tree & NAMES.keys()
