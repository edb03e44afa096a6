"""Kinds of work are declared once: outside of features hardly anything is compared with the name of a workload."""

import ast
import importlib
import re
from collections.abc import Collection, Iterator, Sequence
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

import muster
from muster.api.routes.runs import MEDIA
from muster.app.kinds import BUILT_IN, KINDS, AppKind, app_kind, called, kind_of, loaded
from muster.dashboard import ASSETS
from muster.domain.doors import REMOTE, Door
from muster.domain.kind import WorkKind
from muster.domain.order import order_fields
from muster.engine.workload import REGISTRY

from .app.test_verdicts import run_of
from .test_rooms import nodes_of, trees, walk

SOURCE = Path(muster.__file__).parent
FEATURES = {"suites", "verify", "pool", "councils", "battles", "sim", "testing"}
NAMES = {kind.workload for kind in BUILT_IN}
WORDS = NAMES | {name for kind in BUILT_IN for name in (kind.word, kind.plural)}
CONSTANTS = {"WORKLOAD", *(kind.word.upper().replace(" ", "_") for kind in BUILT_IN), "SCALE", "GENERATION", "REPAIR"}
OF_A_KIND = {"workload", "word", "plural", "command_name", "class_name", "title"}  # attributes that name a kind
MAX_PLACES = 5

# Where a run or a workload is compared with a kind, or kinds stand in a table of their own, and why.
REASONS = {
    "engine/queue/base.py": "the engine knows no kinds, and names of queues are what other programs were told",
    "app/battles/battles.py": "the states of a battle and of a scale test are told to watchers of any run",
    "app/councils/councils.py": "of any run it is asked whether it is a council in which people are to answer",
    "cli/councils/command.py": "trace shows a council by rounds, and any other run by events",
    "store/sql/pool.sql": "the pool's own queries: the index of tasks holds nothing else, and only a literal uses it",
}
# How an expression begins in which the same words mean something else, or in which no kind is told from the others.
OTHER_MEANINGS = {
    ("app/kinds/__init__.py", "_BY_WORKLOAD.get(workload)"): "the list itself",
    ("app/battles/battles.py", "_SUMMARIES.get(run.workload)"): "the table that has its reason",
    ("engine/queue/base.py", "_QUEUE_OF.get(workload, RUNS)"): "the same",
    ("engine/declared.py", "_names.get(workload)"): "the functions that were registered, by their names",
    ("app/project/kinds.py", "{'suite': "): "files of a project",
    ("cli/commands.py", "{'demo': "): "commands by their names",
    ("mcp/errors.py", "match command:"): "the words of a command",
    ("mcp/tools/directing.py", "match given.action:"): "what is done to the pool",
    ("settings/file.py", "found.get('battles', {})"): "a section of muster.toml",
}


def names_a_kind(node: ast.AST, constants: Collection[str] = ()) -> bool:
    """Return whether an expression holds a name of a kind of work, or a constant that stands for one."""
    return any(
        part.value in WORDS
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
        else isinstance(part, ast.Name) and (part.id in CONSTANTS or part.id in constants)
        for part in walk(node)
    )


def is_comparison(node: ast.AST, constants: Collection[str] = ()) -> bool:
    """Return whether something is compared with a kind: by an operator, a method, match, or a table of names."""
    match node:
        case ast.Compare():
            return any(names_a_kind(side, constants) for side in (node.left, *node.comparators))
        case ast.Match():
            return _tells_kinds(node.subject) or any(names_a_kind(case.pattern, constants) for case in node.cases)
        case ast.Call(func=ast.Attribute(attr=method, value=receiver)) if method in LOOKING:
            compared = [receiver, *node.args]
            return any(map(_tells_kinds, compared)) or any(names_a_kind(one, constants) for one in node.args)
        case ast.Call(func=ast.Name(id="dict")):
            return any(word.arg in WORDS for word in node.keywords)
        case ast.Subscript(ctx=ast.Load()):
            return _tells_kinds(node.slice)
        case ast.Dict():
            return any(_is_of_a_kind(key) for key in node.keys if key) or _how_many(node.keys) > 1
        case ast.Set() | ast.Tuple() | ast.List():
            return sum(map(_is_of_a_kind, node.elts)) > 1 or _how_many(node.elts) > 1
    return False


LOOKING = {"get", "pop", "startswith", "endswith", "removeprefix", "removesuffix", "match", "fullmatch", "search"} | {
    "eq", "ne", "contains", "__eq__", "__contains__", "fnmatch", "fnmatchcase", "casefold", "lower",
}  # fmt: skip


def _tells_kinds(node: ast.AST) -> bool:
    """Return whether an expression is the name of a kind of some run."""
    return (isinstance(node, ast.Attribute) and node.attr in OF_A_KIND) or (
        isinstance(node, ast.Name) and node.id == "workload"
    )


def _is_of_a_kind(value: ast.AST) -> bool:
    return _tells_kinds(value) and names_a_kind(value)


def _how_many(values: Sequence[ast.AST | None]) -> int:
    texts = {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}
    return len(NAMES & texts)


def aliases(tree: ast.Module) -> set[str]:
    """Return the names that stand for a kind in a module, because they are given one there."""
    given = [(node.targets, node.value) for node in nodes_of(tree) if isinstance(node, ast.Assign)]
    plain = [(targets, value) for targets, value in given if isinstance(value, ast.Constant | ast.Attribute)]
    named = (target for targets, value in plain if names_a_kind(value) for target in targets)
    return {target.id for target in named if isinstance(target, ast.Name)}


def comparisons() -> Iterator[tuple[str, str]]:
    """Yield the file and text of each comparison outside of features: in Python and in the queries of the store."""
    for name, tree in trees().items():
        if name.split("/")[0] not in FEATURES:
            constants = aliases(tree)
            found = (ast.unparse(node) for node in nodes_of(tree) if is_comparison(node, constants))
            yield from ((name, text) for text in found if not _means_something_else(name, text))
    for path in sorted((SOURCE / "store/sql").rglob("*.sql")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from ((path.relative_to(SOURCE).as_posix(), line.strip()) for line in lines if in_query(line))


def _means_something_else(file: str, text: str) -> bool:
    return any(file == where and text.startswith(words) for where, words in OTHER_MEANINGS)


def in_query(line: str) -> bool:
    """Return whether a line of SQL compares a workload with a name, or looks for it among some."""
    name = rf"'(?:{'|'.join(sorted(NAMES))})'"
    return re.search(rf"\bworkload\b[^=<>]*?(?:=|<>|!=|\bIN\b|\bLIKE\b)\s*\(?\s*{name}", line) is not None


def in_script(line: str) -> bool:
    """Return whether a line of JavaScript compares something with a name of a kind, or has a table of them."""
    words = "|".join(sorted(NAMES))
    name = rf"[\"'`](?:{'|'.join(sorted(WORDS))})[\"'`]"
    compared = rf"[!=]==?\s*{name}|{name}\s*[!=]==?|\bcase\s+{name}|\[\s*{name}\s*\]"
    looked = rf"\.(?:includes|has|get|startsWith|endsWith|indexOf|match|test)\(\s*{name}"
    looking = r"(?:startsWith|endsWith|includes|indexOf|match|replace)\("
    told = rf"\.(?:workload|word|words)\.{looking}|\bswitch\s*\([^)]*workload"
    asked = rf"\bworkload\b[\"']?\s*[:=]\s*(?:{name}|(?:{words})\b)"
    keyed = rf"(?:[{{,]\s*[\"']?(?:{words})[\"']?\s*:.*){{2}}"
    table = rf"(?:[\[{{(,]\s*[\"'`](?:{words})[\"'`].*){{2}}"
    return any(re.search(form, line) for form in (compared, looked, told, asked, keyed, table))


def script_comparisons() -> Iterator[tuple[str, str]]:
    """Yield the file and line of each comparison in the scripts of the page."""
    for path in sorted((SOURCE / "dashboard/static").glob("*.js")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from ((path.name, line.strip()) for line in lines if in_script(line))


# Where the same words are the lists of the library, or what is done to the pool.
OTHER_SCRIPTS = {("start.js", "return { agent, suite: listed("), ("pool.js", '<${Action} label="Remove one"')}


WHAT_TO_DO = "ask the kind instead: add what differs to WorkKind (domain/kind.py), AppKind or KindDoors (app/kinds)"


def test_hardly_anything_is_compared_with_the_name_of_a_workload() -> None:
    found = list(comparisons())
    assert {file for file, _ in found} == set(REASONS), f"{WHAT_TO_DO}: {found}"
    assert len(REASONS) <= MAX_PLACES
    assert sum(file.endswith(".py") for file, _ in found) < MAX_PLACES, f"{WHAT_TO_DO}: {found}"


def test_no_expression_is_left_out_that_is_not_there() -> None:
    texts = {path: (SOURCE / path).read_text(encoding="utf-8") for path, _ in OTHER_MEANINGS}
    nodes = {path: [ast.unparse(node) for node in ast.walk(ast.parse(text))] for path, text in texts.items()}
    gone = [(path, words) for path, words in OTHER_MEANINGS if not any(one.startswith(words) for one in nodes[path])]
    assert gone == []


def test_the_page_knows_kinds_from_the_server() -> None:
    found = {(file, line) for file, line in script_comparisons()}
    others = {(file, line) for file, line in found if any(line.startswith(w) for f, w in OTHER_SCRIPTS if f == file)}
    assert found == others, found - others
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
        'kind.word == "scale test"',
        'kind.plural != "battles"',
        'run.workload.startswith("batt")',
        're.match("batt.*", run.workload)',
        'operator.eq(run.workload, "x")',
        'name.endswith("suite")',
        "TABLE[run.workload]",
        "TABLE.get(kind.word)",
        'X = ["battle", "scale"]',
        "X = dict(battle=1)",
        "mine = BATTLE.workload\nrun.workload == mine",
        'mine = "battle"\nname in (mine, other)',
        "match kind.word:\n case _: pass",
        'match name:\n case "battle" | "other": pass',
        "match run.workload:\n case _: pass",
    ],
)
def test_a_comparison_would_be_noticed(text: str) -> None:
    tree = ast.parse(text)
    assert any(is_comparison(node, aliases(tree)) for node in ast.walk(tree))


@pytest.mark.parametrize(
    "line",
    [
        'if (run.workload === "suite") {',
        'case "battle":',
        '["suite", "battle"].includes(kind)',
        'useGet("/api/runs?workload=suite&limit=1")',
        'SHOWN["battle"]',
        'kind.word === "scale test"',
        'run.workload.startsWith("batt")',
        "switch (run.workload) {",
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
def test_the_writers_of_a_kind_stand_in_the_order_of_its_formats(kind: WorkKind) -> None:
    assert kind.report is not None
    module, _, name = kind.report.function.partition(":")
    formats = vars(importlib.import_module(module))
    own = formats.get(f"{name.removeprefix('report_of_').upper()}_WRITERS") or formats["WRITERS"]
    assert tuple(own) == kind.report.formats
    assert all(format_name in writer.__name__ for format_name, writer in own.items())


def test_every_format_has_a_media_type() -> None:
    assert set(MEDIA) == {name for kind in BUILT_IN if kind.report for name in kind.report.formats}


@pytest.mark.parametrize("known", [known for known in KINDS if known.kind.order], ids=lambda known: known.kind.word)
def test_a_door_is_made_from_the_order_or_says_why_not(known: AppKind) -> None:
    for door in (Door.COMMAND, Door.REQUEST, Door.TOOL, Door.JOB):
        is_open = any(one.at(door) and door not in one.declared.required_at for one in order_fields(known.order))
        assert known.made_at(door) or door in known.doors.own or not is_open or _needs_this_machine(known), door
    assert all(reason for reason in known.doors.own.values())
    assert not any(known.made_at(door) for door in known.doors.own)


def _needs_this_machine(known: AppKind) -> bool:
    """Return whether something that must be said cannot be said over a network."""
    return any(one.required(Door.PYTHON) and not one.declared.doors & REMOTE for one in order_fields(known.order))
