"""The rooms and the arrows between them: every import counts, hidden ones too, and edges reach nothing privately."""

import ast
import gc
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import muster

SOURCE = Path(muster.__file__).parent

# What features may import besides their own folder; "x.base" stands for that one module.
# Declarations of what callers may say, which every door is made from.
ORDERS = {"battles.order", "councils.order", "pool.chains.order", "pool.order", "suites.order", "verify.order"}
FEATURE = {"domain", "text", "statistics", "judging", "reporting", "engine.context", "engine.workload", "store.base"}

# Who may import what. A room always may import itself.
ARROWS: dict[str, set[str]] = {
    "domain": set(),
    "text": {"domain"},
    "statistics": {"domain"},
    "observability": {"domain"},
    "store": {"domain", "text"},
    "sim": {"domain", "text"},
    "settings": {"domain", "text"},
    "agents": {"domain", "text"},
    "reporting": {"domain", "text"},
    "judging": {"domain", "text", "engine.context"},
    "git": {"domain", "text", "agents.processes"},
    "engine": {"domain", "text.typed", "store.base", "agents.base"},
    "client": {"domain", "agents.http"},
    "suites": FEATURE,
    "verify": FEATURE | {"git"},
    "pool": FEATURE | {"git", "agents.base", "agents.processes"},
    "councils": FEATURE,
    "battles": FEATURE,
    "app": {
        "domain", "text", "statistics", "store", "sim", "settings", "agents", "reporting", "judging", "git", "engine",
        "suites", "verify", "pool", "councils", "battles", "observability",
    },
    "cli": {"app", "settings", "domain", "text", "sim", "api", "mcp", "observability", *ORDERS},
    "api": {"app", "settings", "domain", "text", "observability", "dashboard", *ORDERS},
    "mcp": {"app", "settings", "domain", "text", "observability", *ORDERS},
    "dashboard": {"reporting", "app.kinds"},
    "sync": {"app", "domain", "engine.worker"},
    "testing": {
        "domain", "agents.base", "agents.function", "agents.media", "agents.service_terms", "app",
        "engine.base.clock", "engine.declared", "settings", "sim", "store.base",
    },
    "__init__": {
        "agents.base", "app", "domain", "engine.base.clock", "engine.calls.retry", "engine.context", "engine.steps",
        "engine.workload", "observability", "settings", "sync", "testing",
    },
    "__main__": {"cli"},
    "pytest_plugin": {"testing"},
}  # fmt: skip

# An edge is whatever uses `app` and is used by nobody; its private attributes are looked at below.
EDGES = {room for room, arrows in ARROWS.items() if "app" in arrows and not room.startswith("__")} - {"testing"}

# Written as a user would write them: through the package's own names.
USERS = {"cli.demo.work", "cli.demo.child", "pytest_plugin", "sync"}

# Packages that only one room knows: they are optional, or take long to load.
OPTIONAL = {
    "psycopg": "store", "claude_agent_sdk": "agents", "fastapi": "api", "starlette": "api", "uvicorn": "api",
    "opentelemetry": "observability", "mcp": "mcp", "mcp_types": "mcp", "bullmq": "engine", "redis": "engine",
    "pytest": "pytest_plugin",
}  # fmt: skip


@cache  # every worker collects this file, and only some run what is in it
def modules() -> Mapping[str, ast.Module]:
    found = {}
    for file, tree in trees().items():
        parts = Path(file).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__" or len(parts) == 1)
        found[name] = tree
    return found


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the files of the source as they are parsed, by their paths; the tests that ask share a worker."""
    files = sorted(SOURCE.rglob("*.py"))
    gc.disable()  # millions of nodes, all of which stay: to look through them takes longer than to make them
    try:
        return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree; walking anew for every question takes longer than the questions."""
    return tuple(walk(tree))


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it in the order of the text: much faster than `ast.walk`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in reversed(node._fields):
            value = getattr(node, name, None)
            if isinstance(value, list):
                waiting += [each for each in reversed(value) if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


@cache
def imports(module: str) -> tuple[str, ...]:
    """Every module that a file names: imports at any depth, under TYPE_CHECKING, and by importlib."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
    yield from statements(module)
    for node in nodes_of(modules()[module]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.split(".")
            if parts[0] == "muster" and len(parts) > 1 and parts[1] in ARROWS:
                yield node.value


def statements(module: str) -> Iterator[str]:
    """What the import statements of a module name, at any depth; without what it names as text."""
    for node in nodes_of(modules()[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide where they point"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(room: str, target: str) -> bool:
    """Whether a room may import `muster.target`."""
    if target.split(".")[0] == room:
        return True
    return any(target == arrow or target.startswith(arrow + ".") for arrow in ARROWS[room])


def test_every_module_imports_only_what_its_room_may() -> None:
    wrong = [
        f"{module} may not import {name}"
        for module in modules()
        for name in imports(module)
        if name.startswith("muster.") and name != "muster.__version__"
        if not allowed(module.split(".")[0], name.removeprefix("muster."))
    ]
    assert wrong == []


def test_only_what_is_written_as_a_user_would_imports_the_package_itself() -> None:
    assert {module for module in modules() if "muster" in imports(module)} <= USERS


def test_optional_packages_stay_in_their_adapters() -> None:
    wrong = [
        f"{module} may not import {name}"
        for module in modules()
        for name in imports(module)
        if OPTIONAL.get(name.split(".")[0], module.split(".")[0]) != module.split(".")[0]
    ]
    assert wrong == []


def test_the_ground_needs_only_the_standard_library() -> None:
    grounds = [module for module in modules() if module.split(".")[0] == "domain"]
    foreign = {f"{module} imports {name}" for module in grounds for name in imports(module)}
    known = {*sys.stdlib_module_names, "muster", "typing_extensions"}  # the last one for type checkers only
    assert {one for one in foreign if one.rpartition(" ")[2].split(".")[0] not in known} == set()


# What would lead a feature past the call path: stores, processes and sockets of its own.
PAST_THE_CALL_PATH = {"sqlite3", "subprocess", "multiprocessing", "socket", "ssl", "http", "ctypes"}
SPAWNING = {"create_subprocess_exec", "create_subprocess_shell", "posix_spawn", "popen", "execv"}


def test_features_open_no_store_process_or_connection_themselves() -> None:
    rooms = ("suites", "verify", "pool", "councils", "battles")
    features = {module: tree for module, tree in modules().items() if module.split(".")[0] in rooms}
    wrong = {f"{module}: {name}" for module in features for name in imports(module) if _leads_past(name)}
    for module, tree in features.items():
        names = {node.attr for node in nodes_of(tree) if isinstance(node, ast.Attribute)}
        wrong |= {f"{module}: {name}" for name in names & SPAWNING}
    assert wrong == set()
    assert _leads_past("sqlite3.connect")
    assert _leads_past("asyncio.create_subprocess_exec")


def _leads_past(name: str) -> bool:
    return name.split(".")[0] in PAST_THE_CALL_PATH or name.split(".")[-1] in SPAWNING


# Where a module is imported by a name that is not written there: tables of commands, agents and workloads, what
# muster.toml names, and public names.
BY_COMPUTED_NAME = {
    "__init__", "app.agent_kinds.directory", "app.agent_kinds.providers", "app.agent_kinds.services",
    "app", "app.kinds", "app.base.telemetry", "app.base.workloads", "cli.line.commands",
    "engine.workload", "observability.exporters", "testing.trials",
}  # fmt: skip


def test_modules_are_imported_by_computed_names_only_through_tables() -> None:
    found = {
        module
        for module, tree in modules().items()
        for node in nodes_of(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
        if not (node.args and isinstance(node.args[0], ast.Constant))
    }
    assert found == BY_COMPUTED_NAME


def test_what_imports_by_name_has_its_own_name() -> None:
    renamed = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in modules().items()
        for node in nodes_of(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        if "importlib" in ast.unparse(node) and any(alias.asname for alias in node.names)
    ]
    assert renamed == []


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """Which modules each module imports, however deep; a kind names its workload as text, which loads nothing."""
    return {module: frozenset(filter(None, map(_module_of, statements(module)))) - {module} for module in modules()}


def _module_of(name: str) -> str:
    """Return the module that an import leads to, or nothing when it is not ours."""
    place = name.removeprefix("muster.") if name.startswith("muster.") else ""
    while place and place not in modules():
        place = place.rpartition(".")[0]
    return place


def reached(start: str) -> set[str]:
    """Return every module that can be reached over imports of a module."""
    seen: set[str] = set()
    waiting = list(graph()[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph()[module]
    return seen


def folder_of(module: str) -> str:
    """Return the folder in which a module stands; a package stands in itself."""
    is_package = (SOURCE / module.replace(".", "/") / "__init__.py").exists()
    return module if is_package else module.rpartition(".")[0]


def test_no_module_imports_itself_over_others() -> None:
    assert {module for module in modules() if module in reached(module)} == set()


# Folders of one room that import each other both ways: the frame of a door and its parts, what a feature declares and
# what rules it, what many modules of a room share and what puts them together. None may be added.
MUTUAL_FOLDERS = {
    ("api", "api.routes"),
    ("councils", "councils.members"),
    ("councils", "councils.rules"),
    ("domain", "domain.errors"),
    ("mcp", "mcp.tools"),
    ("sim", "sim.batches"),
}


def mutual_folders() -> set[tuple[str, str]]:
    arrows = {
        (folder_of(module), folder_of(target)) for module, targets in graph().items() for target in targets if module
    }
    within = {(one, other) for one, other in arrows if one.split(".")[0] == other.split(".")[0]}
    return {(one, other) for one, other in within if one < other and (other, one) in within}


def test_folders_of_a_room_import_each_other_both_ways_only_where_it_is_known() -> None:
    assert mutual_folders() == MUTUAL_FOLDERS


UNREAD = re.compile(r"\b(?:dict|Mapping|MutableMapping)\[str, Any\]")
MAX_UNREAD = 260  # what strangers sent and nobody has read yet, and options by their names; what is read has a type


def test_hardly_any_json_is_handed_on_without_a_type() -> None:
    found = sum(len(UNREAD.findall(path.read_text(encoding="utf-8"))) for path in SOURCE.rglob("*.py"))
    assert found <= MAX_UNREAD, "give what is known a type, and JSON the type Json of muster.domain.canonical"


MAX_HIDDEN = 47


def hidden_imports() -> Iterator[str]:
    """Imports inside of functions."""
    for module, tree in modules().items():
        functions = [node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside: set[ast.AST] = set()
        for function in functions:
            if function not in inside:  # else it was walked through with the function that it stands in
                inside.update(walk(function))
        found = [node for node in inside if isinstance(node, ast.Import | ast.ImportFrom)]
        yield from (f"{module}:{node.lineno}: {ast.unparse(node)}" for node in found)


def test_imports_stand_at_the_top_unless_they_are_slow_and_seldom_needed() -> None:
    found = sorted(hidden_imports())
    assert len(found) < MAX_HIDDEN, "\n".join(found)


BY_NAME = {"getattr", "setattr", "attrgetter", "methodcaller"}


def reaches(module: ast.Module) -> Iterator[str]:
    """Private attributes of other objects that a module uses, also by their names."""
    for node in nodes_of(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_NAME:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if any(part.startswith("_") and not part.startswith("__") for text in texts for part in text.split(".")):
                yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os")
            if not own:
                yield ast.unparse(node)


def test_edges_use_no_private_attribute() -> None:
    edges = {module: tree for module, tree in modules().items() if module.split(".")[0] in EDGES}
    assert {module: found for module, tree in edges.items() if (found := list(reaches(tree)))} == {}
    private = ast.parse("muster._backend.store.runs; self._muster._backend; self._own; getattr(m, '_backend')")
    assert set(reaches(private)) == {"muster._backend", "self._muster._backend", "getattr(m, '_backend')"}


# What puts the rooms together is nobody else's business.
ASSEMBLY = {"app.base.backend", "app.opening"}


def defined_in(module: str) -> set[str]:
    """Names that a module defines itself, rather than imports."""
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in modules()[module].body if isinstance(node, named)}
    for node in modules()[module].body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {one.id for one in targets if isinstance(one, ast.Name)}
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets):
            found |= set(ast.literal_eval(node.value))
    return found


def test_edges_take_from_the_application_layer_only_what_it_defines_or_offers() -> None:
    wrong = []
    for module in (module for module in modules() if module.split(".")[0] in EDGES):
        for name in imports(module):
            place = name.removeprefix("muster.")
            source, _, leaf = place.rpartition(".")
            value = name.startswith("muster.app.") and source in modules() and place not in modules()
            if value and (source in ASSEMBLY or leaf not in defined_in(source)):
                wrong.append(f"{module} takes {leaf} from {source}")
    assert wrong == []


def modules_of_the_application(tree: ast.Module) -> Iterator[str]:
    """Imports of whole modules of `app`, through which anything could be reached."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("muster."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muster.app"):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if name.removeprefix("muster.") in modules())


def test_edges_import_names_of_the_application_layer_not_its_modules() -> None:
    edges = {module: tree for module, tree in modules().items() if module.split(".")[0] in EDGES}
    found = {module: names for module, tree in edges.items() if (names := list(modules_of_the_application(tree)))}
    assert found == {}
    sneaky = ast.parse(
        "from muster.app import opening; import muster.app.suites.suites as s; from muster.app import Muster"
    )
    assert list(modules_of_the_application(sneaky)) == ["muster.app.opening", "muster.app.suites.suites"]


# What ends a command itself: a line that cannot be read, and an error that nobody expected; and the errors of HTTP.
ERRORS_OF_EDGES = {
    "cli.main",
    "cli.line.frame",
    "cli.demo.command",
    "cli.terminal.output",
    "api.errors",
    "api.gateway_shapes",
}


def test_edges_take_the_errors_of_outcomes_from_the_application_layer() -> None:
    found = {
        module
        for module, tree in modules().items()
        for node in nodes_of(tree)
        if module.split(".")[0] in EDGES and isinstance(node, ast.Dict)
        if {"code", "message"} <= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    }
    assert found == ERRORS_OF_EDGES


def test_there_is_no_room_without_a_use() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set(ARROWS)
    assert not {"utils", "util", "helpers", "common"} & rooms
    assert all(any((SOURCE / room).rglob("*.py")) for room in rooms)


ENVIRONMENT = {"environ", "getenv", "environb"}


def test_the_environment_is_read_in_one_place() -> None:
    readers = {
        module
        for module, tree in modules().items()
        for node in nodes_of(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT)
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and ENVIRONMENT & {one.name for one in node.names})
    }
    # The scripted CLI agent is a program of its own, which Muster starts like any other.
    assert readers <= {"settings", "sim.cli_agent.__main__"}


def test_a_forbidden_import_would_be_noticed() -> None:
    assert not allowed("domain", "store.base.Store")
    assert not allowed("engine", "store.sqlite.open_sqlite")
    assert not allowed("suites", "engine.calls.CallPath")
    assert not allowed("suites", "verify.finding.Finding")
    assert not allowed("cli", "suites.spec.SuiteSpec")
    assert allowed("engine", "store.base.Store")
    assert allowed("suites", "engine.context.Context")


def classes() -> Counter[str]:
    return Counter(node.name for tree in modules().values() for node in tree.body if isinstance(node, ast.ClassDef))


def test_a_class_name_means_one_thing() -> None:
    assert {name for name, count in classes().items() if count > 1} == set()
