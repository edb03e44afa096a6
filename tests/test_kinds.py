"""Kinds of work are declared once: outside of features hardly anything is compared with the name of a workload."""

import ast
import importlib
import re
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

import muster
from muster.api.routes.runs import MEDIA
from muster.app.kinds import BUILT_IN, KINDS, AppKind, app_kind, called, kind_of, loaded
from muster.dashboard import ASSETS
from muster.domain.kind import WorkKind
from muster.domain.order import REMOTE, Door, order_fields
from muster.engine.workload import REGISTRY

from .app.test_verdicts import run_of

SOURCE = Path(muster.__file__).parent
FEATURES = {"suites", "verify", "pool", "councils", "battles", "sim", "testing"}
NAMES = {kind.workload for kind in BUILT_IN}
CONSTANTS = {"WORKLOAD", *(kind.word.upper().replace(" ", "_") for kind in BUILT_IN), "SCALE", "GENERATION", "REPAIR"}
MAX_PLACES = 5

# Where a run or a workload is compared with a kind, or kinds stand in a table of their own, and why.
REASONS = {
    "engine/queue/base.py": "the engine knows no kinds, and names of queues are what other programs were told",
    "app/battles/battles.py": "the states of a battle and of a scale test are told to watchers of any run",
    "app/councils/councils.py": "of any run it is asked whether it is a council in which people are to answer",
    "cli/councils/command.py": "trace shows a council by rounds, and any other run by events",
    "store/sql/pool.sql": "the pool's own queries: the index of tasks holds nothing else, and only a literal uses it",
}
# Where the same words are the names of files, of commands or of what is done to the pool.
OTHER_WORDS = {
    "app/project/kinds.py",
    "app/project/validation.py",
    "cli/commands.py",
    "cli/project.py",
    "mcp/errors.py",
    "mcp/tools/directing.py",
}


def names_a_kind(node: ast.AST) -> bool:
    """Return whether an expression holds the name of a workload, or a constant that stands for one."""
    inner = list(ast.walk(node))
    literals = {part.value for part in inner if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    constants = {part.id for part in inner if isinstance(part, ast.Name)}
    return bool(literals & NAMES or constants & CONSTANTS)


def is_comparison(node: ast.AST) -> bool:
    """Return whether something is compared with a kind, by an operator, by match or in a table of names."""
    if isinstance(node, ast.Compare):
        return any(map(names_a_kind, (node.left, *node.comparators)))
    if isinstance(node, ast.Match):
        return "workload" in ast.unparse(node.subject) or any(names_a_kind(case.pattern) for case in node.cases)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
        return bool(node.args) and names_a_kind(node.args[0])
    values = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.Set | ast.Tuple) else []
    if isinstance(node, ast.Dict) and any(_is_of_a_kind(key) for key in values if key):
        return True
    if sum(_is_of_a_kind(value) for value in values if value) > 1:
        return True
    texts = [value.value for value in values if isinstance(value, ast.Constant)]
    return len(NAMES.intersection(text for text in texts if isinstance(text, str))) > 1


def _is_of_a_kind(value: ast.AST) -> bool:
    return ast.unparse(value).endswith(".workload") and names_a_kind(value)


def comparisons() -> Iterator[tuple[str, int]]:
    """Yield the file and line of each comparison outside of features: in Python and in the queries of the store."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.split("/")[0] not in FEATURES and name not in OTHER_WORDS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield from (
                (name, node.lineno) for node in ast.walk(tree) if hasattr(node, "lineno") and is_comparison(node)
            )
    for path in sorted((SOURCE / "store/sql").rglob("*.sql")):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        yield from ((path.relative_to(SOURCE).as_posix(), number) for number, line in lines if in_query(line))


def in_query(line: str) -> bool:
    """Return whether a line of SQL compares a workload with a name, or looks for it among some."""
    name = rf"'(?:{'|'.join(sorted(NAMES))})'"
    return re.search(rf"\bworkload\b[^=<>]*?(?:=|<>|!=|\bIN\b|\bLIKE\b)\s*\(?\s*{name}", line) is not None


def in_script(line: str) -> bool:
    """Return whether a line of JavaScript compares something with the name of a workload, or has a table of them."""
    name = rf"[\"'`](?:{'|'.join(sorted(NAMES))})[\"'`]"
    compared = (
        rf"(?:[!=]==?\s*{name}|{name}\s*[!=]==?|\bcase\s+{name}|\.(?:includes|has|get)\(\s*{name}|\[\s*{name}\s*\])"
    )
    asked = rf"\bworkload\b[\"']?\s*[:=]\s*(?:{name}|(?:{'|'.join(sorted(NAMES))})\b)"
    keyed = rf"(?:[{{,]\s*[\"']?(?:{'|'.join(sorted(NAMES))})[\"']?\s*:.*){{2}}"
    table = rf"(?:[\[{{(,]\s*{name}.*){{2}}"
    return any(re.search(form, line) for form in (compared, asked, keyed, table))


def script_comparisons() -> Iterator[tuple[str, str]]:
    """Yield the file and line of each comparison in the scripts of the page."""
    for path in sorted((SOURCE / "dashboard/static").glob("*.js")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from ((path.name, line.strip()) for line in lines if in_script(line))


# Where the same words are the lists of the library, or what is done to the pool.
OTHER_SCRIPTS = {"start.js", "pool.js"}


def test_hardly_anything_is_compared_with_the_name_of_a_workload() -> None:
    found = list(comparisons())
    assert {file for file, _ in found} == set(REASONS), found
    assert len(REASONS) <= MAX_PLACES
    assert sum(file.endswith(".py") for file, _ in found) < MAX_PLACES, found


def test_the_page_knows_kinds_from_the_server() -> None:
    assert {file for file, _ in script_comparisons()} <= OTHER_SCRIPTS, list(script_comparisons())
    assert b'"workload": "battle"' in ASSETS["/page/kinds.js"].body


@pytest.mark.parametrize(
    "text",
    [
        'run.workload == "task"',
        'name != "task"',
        "kind is SUITE",
        'run.workload in {"task"}',
        "run.workload in (SUITE.workload, COUNCIL.workload)",
        'X = {"battle": 1, "scale": 2}',
        "X = {BATTLE.workload: 1}",
        'X.get("battle")',
        'match name:\n case "battle" | "other": pass',
        "match run.workload:\n case _: pass",
    ],
)
def test_a_comparison_would_be_noticed(text: str) -> None:
    assert any(map(is_comparison, ast.walk(ast.parse(text))))


@pytest.mark.parametrize(
    "line",
    [
        'if (run.workload === "suite") {',
        'case "battle":',
        '["suite", "battle"].includes(kind)',
        'useGet("/api/runs?workload=suite&limit=1")',
        'SHOWN["battle"]',
        "const SHOWN = { battle: one, scale: two };",
    ],
)
def test_a_comparison_in_a_script_would_be_noticed(line: str) -> None:
    assert in_script(line)


@pytest.mark.parametrize("line", ["WHERE runs.workload = 'task'", "WHERE workload IN ('task', 'chain')"])
def test_a_comparison_in_a_query_would_be_noticed(line: str) -> None:
    assert in_query(line)


def test_a_comparison_of_any_two_kinds_is_none() -> None:
    assert not any(map(is_comparison, ast.walk(ast.parse("run.workload != kind.workload"))))


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.workload)
def test_the_workload_and_the_report_of_a_kind_are_where_it_says(kind: WorkKind) -> None:
    importlib.import_module(kind.module)
    assert kind.workload in REGISTRY
    assert kind.about.endswith(".")
    assert kind.command.startswith("muster ")
    if kind.report is not None:
        assert iscoroutinefunction(loaded(kind.report.function))


def test_a_workload_of_the_user_is_a_kind_by_its_name() -> None:
    kind = kind_of(run_of("triage", {"question": "?"}, None))
    assert (kind.word, kind.plural, kind.report, kind.is_built_in) == ("triage", "triages", None, False)
    assert kind.subject({"question": "?"}) == ()
    assert app_kind("triage").page.tab == ""


def test_kinds_are_found_by_what_people_call_them() -> None:
    assert called("scale tests") == ("scale",)
    assert called("verifications") == ("waves",)
    assert called(" ") == ()
    assert len({known.kind.word for known in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if kind.report], ids=lambda kind: kind.workload)
def test_a_kind_names_the_formats_of_its_writers(kind: WorkKind) -> None:
    assert kind.report is not None
    module, _, name = kind.report.function.partition(":")
    formats = vars(importlib.import_module(module))
    own = formats.get(f"{name.removeprefix('report_of_').upper()}_WRITERS") or formats["WRITERS"]
    assert tuple(own) == kind.report.formats


def test_every_format_has_a_media_type() -> None:
    assert set(MEDIA) == {name for kind in BUILT_IN if kind.report for name in kind.report.formats}


@pytest.mark.parametrize("known", [known for known in KINDS if known.kind.order], ids=lambda known: known.kind.word)
def test_a_door_is_made_from_the_order_or_says_why_not(known: AppKind) -> None:
    for door in (Door.COMMAND, Door.REQUEST, Door.TOOL, Door.JOB):
        is_open = any(one.at(door) and door not in one.declared.required_at for one in order_fields(known.kind.order))
        assert known.made_at(door) or door in known.doors.own or not is_open or _needs_this_machine(known), door
    assert all(reason for reason in known.doors.own.values())
    assert not any(known.made_at(door) for door in known.doors.own)


def _needs_this_machine(known: AppKind) -> bool:
    """Return whether something that must be said cannot be said over a network."""
    return any(one.required(Door.PYTHON) and not one.declared.doors & REMOTE for one in order_fields(known.kind.order))
