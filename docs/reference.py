"""What the reference of Python has from the code: signatures of each part, fields of all values, the tree of errors."""

import ast
import importlib
import re
from collections.abc import Iterator
from textwrap import fill

import muster
from docs.sync_stub import Module, module_of
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
from muster.app.runs.details import CallDetails
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.runs import Runs
from muster.app.suites.suites import Suites
from muster.app.verify.code_repairs import CodeRepairs
from muster.app.verify.verifications import Verifications
from muster.domain.call import Timings, Trace
from muster.domain.dispatch import Mode
from muster.domain.entry import AttemptState, Entry, EntryKind, EntryState
from muster.domain.money import Lane
from muster.domain.run import CallCounts, Spent
from muster.store.base import Attempt

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
HELD = (Entry, EntryKind, EntryState, CallDetails, Attempt, AttemptState, Timings, Trace, Lane, Spent, CallCounts, Mode)
VALUES, ERRORS = "## Values\n\n", "## Errors\n\n"
OPEN, CLOSE = "```pyi\n", "```\n"  # not an example: nothing runs it
WIDTH = 116
Method = ast.FunctionDef | ast.AsyncFunctionDef


def made_reference(page: str) -> str:
    """Return the page with all that is made from the code: what stands behind its tables, and its last two chapters."""
    return with_chapter(with_chapter(with_signatures(page), VALUES, values()), ERRORS, errors())


def with_chapter(page: str, head: str, code: str) -> str:
    """Return the page with the code of a chapter behind its first paragraph."""
    before, head, chapter = page.partition(head)
    if not head:
        raise SystemExit("the reference of Python lacks a chapter of what is made from the code")
    intro, _, rest = chapter.partition("\n\n")
    below = rest.partition(CLOSE)[2] if rest.startswith(OPEN) else rest
    return f"{before}{head}{intro.rstrip()}\n\n{OPEN}{code}{CLOSE}" + (f"\n{below.lstrip()}" if below.strip() else "")


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


def values() -> str:
    """Return the fields of every public value, with what the code says of them."""
    parts = {kind for _, kind in PARTS}
    public = [getattr(muster, name) for name in dir(muster)]
    classes = [one for one in (*public, *HELD) if isinstance(one, type) and not issubclass(one, (Exception, *parts))]
    return "\n".join(found for kind in classes if (found := _value_of(kind)))


def _value_of(kind: type) -> str:
    """Return the fields and properties of a class; nothing for one that has none."""
    shown: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if not parent.__module__.startswith("muster."):
            continue
        source = module_of(parent.__module__)
        for node in source.class_of(parent.__name__).body:
            if isinstance(node, ast.AnnAssign | ast.Assign):
                name, text = _field(node, source)
                shown[name] = text
            elif isinstance(node, ast.FunctionDef) and any(
                ast.unparse(one) == "property" for one in node.decorator_list
            ):
                shown[node.name] = f"{node.name}: {_typed(node.returns)}  # {_first_line(node).removeprefix('Return ')}"
    lines = [_line(text) for name, text in shown.items() if not name.startswith("_") and text]
    head = _first_line(module_of(kind.__module__).class_of(kind.__name__))
    return f"class {kind.__name__}:  # {head}\n{''.join(lines)}" if lines else ""


def _line(text: str) -> str:
    """Return a field with its comment behind it; a long one, which a formatter would break up, with it above."""
    if len(text) <= WIDTH:
        return f"    {text}\n"
    field, _, told = text.partition("  # ")
    return f"{fill(told, WIDTH, initial_indent='    # ', subsequent_indent='    # ')}\n    {field}\n"


def _field(node: ast.AnnAssign | ast.Assign, source: Module) -> tuple[str, str]:
    """Return the name of a field, and how it is written; of an order its help. Nothing for what is not of instances."""
    if isinstance(node, ast.Assign):  # a member of an enumeration
        name = ast.unparse(node.targets[0])
        return name, f"{name} = {_value(node.value, source)}{_comment(node, source)}"
    name, annotation = ast.unparse(node.target), node.annotation
    if "ClassVar" in ast.unparse(annotation):
        return name, ""
    told = _comment(node, source)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        annotation, *marks = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        helps = [
            one.value for mark in marks if isinstance(mark, ast.Call) for one in mark.keywords if one.arg == "help"
        ]
        told = "".join(f"  # {ast.literal_eval(one)}" for one in helps if isinstance(one, ast.Constant)) or told
    return name, f"{name}: {_typed(annotation)}{_default(node.value, source)}{told}"


def _default(value: ast.expr | None, source: Module) -> str:
    """Return the default of a field, as it is written or as a factory makes it."""
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "field"):
        return "" if value is None else f" = {_value(value, source)}"
    for given in value.keywords:
        if given.arg == "default":
            return f" = {_value(given.value, source)}"
        if given.arg == "default_factory":
            made = given.value.body if isinstance(given.value, ast.Lambda) else None
            return f" = {_value(made, source)}" if made else f" = {ast.unparse(given.value)}()"
    return ""


def _comment(node: ast.stmt, source: Module) -> str:
    """Return what stands behind a field, or in the lines above it."""
    lines = source.text.splitlines()
    line = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode().strip()
    above = list[str]()
    for text in reversed(lines[: node.lineno - 1]):
        if not text.strip().startswith("#"):
            break
        above.insert(0, text.strip().removeprefix("#").strip())
    told = line.removeprefix("#").partition("#")[0].strip() if line.startswith("#") else " ".join(above)
    return "" if not told or told.startswith(("type:", "noqa")) else f"  # {told}"


def errors() -> str:
    """Return the tree of the errors that a program may catch, with their codes."""
    public = {getattr(muster, name) for name in dir(muster)}

    def below(kind: type[muster.MusterError], depth: int) -> Iterator[str]:
        if kind in public:
            told = _first_line(module_of(kind.__module__).class_of(kind.__name__)).removesuffix(".")
            own = ", ".join(dict.fromkeys(_attributes(kind)))
            marks = [f"has {own}"] * bool(own) + ["retryable"] * bool(kind.retryable)
            yield f"{'    ' * depth}{kind.__name__}  # {'; '.join([f'{kind.code}: {told}', *marks])}\n"
            depth += 1
        for child in kind.__subclasses__():
            if child.__module__.startswith("muster.domain.errors") and child.__bases__[0] is kind:
                yield from below(child, depth)

    return "".join(below(muster.MusterError, 0))


def _attributes(kind: type) -> Iterator[str]:
    """Yield what an error has besides what all have."""
    for node in ast.walk(module_of(kind.__module__).class_of(kind.__name__)):
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self" and kind is not muster.MusterError:
                yield one.attr


def _first_line(node: ast.ClassDef | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")


def signatures(kind: type) -> str:
    """Return the signatures of the public methods and properties of a class and of what it is made from."""
    found: dict[str, str] = {}
    for parent in reversed([one for one in kind.__mro__ if one not in (object, KindPart)]):
        if not parent.__module__.startswith("muster."):
            continue
        source, own = module_of(parent.__module__), dict[str, list[Method]]()
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
            yield from _options(kind.__name__, module_of(kind.__module__))
    for node in module_of(home).class_of(own).body:
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
