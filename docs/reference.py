"""The signatures in the reference of Python: of each part what it can do, with arguments, defaults and types."""

import ast
import importlib
import re
from collections.abc import Iterator

import muster
from docs.sync_stub import Module
from muster.app.agent_kinds.directory import Agents
from muster.app.base.stores import StoreFile
from muster.app.battles.battles import Battles
from muster.app.battles.scales import Scales
from muster.app.chains.chains import Chains
from muster.app.councils.councils import Councils
from muster.app.hooks import RunHooks
from muster.app.parts.audit import UserActions
from muster.app.parts.budgets import ServerBudgets
from muster.app.parts.library import Library
from muster.app.pool.monitor import PoolMonitor
from muster.app.pool.pool import Pool
from muster.app.pool.tasks import Tasks
from muster.app.pool.trees import TaskTrees
from muster.app.project.files import Project
from muster.app.runs.batches import Batches
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.runs import Runs
from muster.app.suites.suites import Suites
from muster.app.verify.code_repairs import CodeRepairs
from muster.app.verify.verifications import Verifications

# The parts by their names in the heads of the tables.
PARTS: tuple[tuple[str, type], ...] = (
    ("`m`", muster.Muster),
    ("`m.runs`", Runs),
    ("a `muster.RunHandle`", RunHandle),
    ("a `muster.Context`", muster.Context),
    ("`m.suites`", Suites),
    ("`m.verify`", Verifications),
    ("`m.repairs`", CodeRepairs),
    ("`m.pool`", Pool),
    ("`m.pool.tasks`", Tasks),
    ("`m.pool.trees`", TaskTrees),
    ("`m.pool.monitor`", PoolMonitor),
    ("`m.chains`", Chains),
    ("`m.councils`", Councils),
    ("`m.battles`", Battles),
    ("`m.battles.scales`", Scales),
    ("`m.batches`", Batches),
    ("`m.agents`", Agents),
    ("`m.store`", StoreFile),
    ("`m.project`", Project),
    ("`m.library`", Library),
    ("`m.hooks`", RunHooks),
    ("`m.server_budgets`", ServerBudgets),
    ("`m.audit`", UserActions),
)
OPEN, CLOSE = "```pyi\n", "```\n"  # not an example: nothing runs it
WIDTH = 116
Method = ast.FunctionDef | ast.AsyncFunctionDef


def with_signatures(page: str) -> str:
    """Return the page with the signatures of each part behind its table."""
    for part, kind in PARTS:
        head, table, rest = page.partition(f"| of {part} | |\n|---|---|\n")
        rows, _, below = rest.partition("\n\n")
        if not table:
            raise SystemExit(f"the reference of Python has no table of {part}")
        below = below.partition(CLOSE)[2].lstrip("\n") if below.startswith(OPEN) else below
        page = f"{head}{table}{rows.rstrip()}\n\n{OPEN}{signatures(kind)}{CLOSE}\n{below}"
    return page.rstrip("\n") + "\n"


def signatures(kind: type) -> str:
    """Return the signatures of the public methods and properties of a class and of what it is made from."""
    found: dict[str, str] = {}
    for parent in reversed([one for one in kind.__mro__ if one not in (object, KindPart)]):
        if not parent.__module__.startswith("muster."):
            continue
        source, own = Module(parent.__module__), dict[str, list[Method]]()
        for node in source.class_of(parent.__name__).body:
            if isinstance(node, Method) and not node.name.startswith("_"):
                own.setdefault(node.name, []).append(node)
        found |= {name: _signature(definitions, source) for name, definitions in own.items()}
    return "".join(found.values())


def _signature(definitions: list[Method], source: Module) -> str:
    """Return one definition: of overloads all arguments with their defaults, and what any of them returns."""
    first, last = definitions[0], definitions[-1]
    returned = " | ".join(dict.fromkeys(_typed(one.returns) for one in definitions[:-1] or definitions))
    marks = {ast.unparse(one) for one in last.decorator_list}
    if marks & {"property", "cached_property"}:
        return f"{last.name}: {returned}\n"
    word = "async def" if isinstance(first, ast.AsyncFunctionDef) and "AsyncIterator" not in returned else "def"
    lines = [f"{word} {last.name}("]
    for part in [*(f"{one}, " for one in _arguments(last.args, source, "staticmethod" in marks)), f") -> {returned}"]:
        if len(lines[-1]) + len(part) > WIDTH:
            lines.append("    ")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines).replace(", )", ")").replace(",\n    )", "\n    )") + "\n"


def _arguments(given: ast.arguments, source: Module, is_static: bool) -> Iterator[str]:
    """Yield the arguments of a method but `self`; options that stand in a TypedDict one by one."""
    plain: list[ast.arg] = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults)) + given.defaults
    for one, default in [*zip(plain, defaults, strict=True)][0 if is_static else 1 :]:
        yield _argument(one, default, source)
    if given.vararg is not None:
        yield f"*{_argument(given.vararg, None, source)}"
    elif given.kwonlyargs or given.kwarg is not None:
        yield "*"
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(one, default, source)
    if given.kwarg is not None:
        options = re.fullmatch(r"Unpack\[(\w+)\]", _typed(given.kwarg.annotation))
        yield from [f"**{_argument(given.kwarg, None, source)}"] if options is None else _options(options[1], source)


def _options(name: str, source: Module) -> Iterator[str]:
    home, own = source.homes[name]
    options = getattr(importlib.import_module(home), own)
    for kind in reversed(options.__orig_bases__ if hasattr(options, "__orig_bases__") else ()):
        if kind.__name__ != "TypedDict":
            yield from _options(kind.__name__, Module(kind.__module__))
    for node in Module(home).class_of(own).body:
        if isinstance(node, ast.AnnAssign):
            yield f"{ast.unparse(node.target)}: {_typed(node.annotation)} = …"


def _argument(one: ast.arg, default: ast.expr | None, source: Module) -> str:
    typed = f"{one.arg}: {_typed(one.annotation)}"
    return typed if default is None else f"{typed} = {_value(default, source)}"


def _value(default: ast.expr, source: Module) -> str:
    """Return a default as it is written; of the name of a number or a text, that."""
    if isinstance(default, ast.Name):
        value = getattr(importlib.import_module(source.name), default.id, None)
        return repr(value) if type(value) in (int, float, str) else default.id
    return "…" if isinstance(default, ast.Lambda) else ast.unparse(default).replace("'", '"')


def _typed(annotation: ast.expr | None) -> str:
    return "None" if annotation is None else ast.unparse(annotation).replace("'", "")
