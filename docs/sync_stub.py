"""Makes the types of `muster.sync` from the source of the asynchronous surface: what is awaited there, waits here."""

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import muster
from muster.app.runs.kind_part import KindPart
from muster.sync.surface import KINDS

PUBLIC = Path(muster.__file__).with_suffix(".pyi")
HEADER = '"""Made by `make docs`: the types of `muster.sync`, from those of the asynchronous surface."""\n'
# What an asynchronous result is for code that waits.
WAITING = {
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Iterator",
    "AsyncIterable": "Iterable",
    "AbstractAsyncContextManager": "AbstractContextManager",
}
HOMES = {"Iterator": "collections.abc", "Iterable": "collections.abc", "AbstractContextManager": "contextlib"}
SPECIAL = {"__anext__": "__next__", "__aiter__": "__iter__", "__aenter__": "__enter__", "__aexit__": "__exit__"}


class Module:
    """The source of a module: its classes, and where its names come from."""

    def __init__(self, name: str) -> None:
        self.name = name
        path = inspect.getsourcefile(importlib.import_module(name)) or ""
        self.text = Path(path).read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.homes: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.homes |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        for statement in self.tree.body:
            self.homes |= {name: (self.name, name) for name in defined(statement)}

    def class_of(self, name: str) -> ast.ClassDef:
        """Return a class of the module."""
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)


@cache
def module_of(name: str) -> Module:
    """Return the source of a module, read once."""
    return Module(name)


def defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


class Stub:
    """The text of the stub, and the imports that it needs."""

    def __init__(self) -> None:
        self.imports: dict[str, tuple[str, str]] = {}
        self.classes = [self.class_text(name, module) for name, module in KINDS.items()]
        self.functions = self.opening()

    def text(self) -> str:
        """Return the whole file."""
        lines = PUBLIC.read_text(encoding="utf-8").splitlines()
        names = {line.split()[5]: line for line in lines if line.startswith("from ")}
        public = [line for name, line in names.items() if name not in {*KINDS, "doctor", "open", "sync"}]
        used = {name for name in self.imports if name not in names}
        imports = [f"from {self.imports[name][0]} import {self.imports[name][1]}" for name in sorted(used)]
        body = "\n\n".join([*self.classes, self.functions])
        return f"{HEADER}\n" + "\n".join(sorted([*imports, *public])) + f"\n\n{body}\n"

    def class_text(self, name: str, module: str) -> str:
        """Return a class whose methods wait."""
        kind = getattr(importlib.import_module(module), name)
        parents = [parent for parent in kind.__mro__ if parent not in (object, KindPart)]
        members: dict[str, list[str]] = {}
        for parent in reversed(parents):
            source = module_of(parent.__module__)
            own = source.class_of(parent.__name__)
            members |= self.attributes(own, source)
            members |= self.methods(own, source)
        if name == "Muster":
            members |= closing()
        lines = [line for group in members.values() for line in group] or ["    ..."]
        return f"class {name}{self.generic(kind)}:\n" + "\n".join(lines)

    def generic(self, kind: type) -> str:
        """Return what a class says of its type parameters."""
        source = module_of(kind.__module__)
        found = [one for one in source.class_of(kind.__name__).bases if ast.unparse(one).startswith("Generic[")]
        return "".join(f"({self.typed(one, source)})" for one in found)

    def attributes(self, kind: ast.ClassDef, source: Module) -> dict[str, list[str]]:
        """Return what `__init__` sets of its object."""
        found: dict[str, list[str]] = {}
        for node in ast.walk(kind):
            match node:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=shown):
                    pass
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                    value=ast.Call(func=ast.Name() as shown),
                ):
                    pass
                case _:
                    continue
            if not name.startswith("_"):
                found[name] = [f"    {name}: {self.typed(shown, source)}"]
        return found

    def methods(self, kind: ast.ClassDef, source: Module) -> dict[str, list[str]]:
        """Return the public methods and properties; of one with overloads all of them and not the last."""
        found: dict[str, list[str]] = {}
        for node in kind.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            name = SPECIAL.get(node.name, node.name)
            if name.startswith("_") and node.name not in SPECIAL:
                continue
            decorators = {ast.unparse(one).split(".")[-1] for one in node.decorator_list}
            lines = self.method(node, name, decorators, source)
            if "overload" in decorators:
                found[name] = [*found.get(name, []), *lines]
            elif name in found and "@overload" in found[name][0]:  # what they say stands on what implements them
                found[name] = [*found[name][:-1], found[name][-1].removesuffix(" ..."), *lines[1:]]
            else:
                found[name] = lines
        return found

    def method(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, decorators: set[str], source: Module
    ) -> list[str]:
        """Return one method."""
        returned = self.waiting(node, decorators, source)
        shown = [f"    @{one}" for one in ("overload", "staticmethod", "classmethod") if one in decorators]
        if "overload" in decorators:
            self.imports["overload"] = ("typing", "overload")
        if decorators & {"property", "cached_property"}:
            shown.append("    @property")
        line = f"    def {name}({self.arguments(node.args, source)}) -> {returned}:"
        words = ast.get_docstring(node)
        if words is None or "overload" in decorators:
            return [*shown, f"{line} ..."]
        text = "\n".join(f"        {one}".rstrip() for one in words.replace("\\", "\\\\").splitlines())
        return [*shown, line, f'        """{text.strip()}"""', ""]

    def arguments(self, arguments: ast.arguments, source: Module) -> str:
        """Return the parameters, with `...` for their defaults."""
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if one is not None and one.annotation is not None:
                one.annotation = ast.parse(self.typed(one.annotation, source), mode="eval").body
        arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
        arguments.kw_defaults = [None if one is None else ast.Constant(...) for one in arguments.kw_defaults]
        return ast.unparse(arguments)

    def waiting(self, node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: set[str], source: Module) -> str:
        """Return what a method returns to code that waits."""
        shown = "None" if node.returns is None else self.typed(node.returns, source)
        if "asynccontextmanager" in decorators:
            shown = re.sub(r"^AsyncIterator\[", "AbstractContextManager[", shown)
        elif "contextmanager" in decorators:
            shown = re.sub(r"^Iterator\[", "AbstractContextManager[", shown)
        shown = re.sub(r"^(?:Awaitable\[|Coroutine\[\w+, \w+, )(.*)\]$", r"\1", shown)
        for asynchronous, name in WAITING.items():
            shown = re.sub(rf"\b{asynchronous}\[", f"{name}[", shown)
        shown = re.sub(r"^Iterator\[(.+), None\]$", r"Iterator[\1]", shown)  # of a generator, which is sent nothing
        self.imports |= {name: (home, name) for name, home in HOMES.items() if f"{name}[" in shown}
        return shown

    def typed(self, annotation: ast.expr, source: Module) -> str:
        """Return an annotation as text, and note what it must import."""
        text = ast.unparse(annotation)
        for quoted in re.findall(r"'([^']*)'", text) if "Literal" not in text else ():
            text = text.replace(f"'{quoted}'", quoted)
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                self.note(node.id, source)
        return text

    def note(self, name: str, source: Module) -> None:
        """Note where a name comes from; one that waits is defined here."""
        module, home = source.homes[name]
        if KINDS.get(home) == module or name in KINDS:
            return
        if home != name:
            raise ValueError(f"{source.name} imports {home} as {name}: use its own name in annotations")
        known = self.imports.setdefault(name, (module, home))
        if known != (module, home) and resolved(*known) is not resolved(module, home):
            raise ValueError(f"{name} is {known} and {module, home}: one of them needs another name")

    def opening(self) -> str:
        """Return `open` and `doctor`."""
        source = module_of("muster.app.opening")
        node = next(
            one for one in source.tree.body if isinstance(one, ast.AsyncFunctionDef) and one.name == "open_muster"
        )
        words = (ast.get_docstring(node) or "").replace("`async with` closes", "`with` or `close` closes")
        text = "\n".join(f"    {one}".rstrip() for one in words.splitlines()).strip()
        opened = f'def open({self.arguments(node.args, source)}) -> Muster:\n    """{text}"""\n'
        module = module_of("muster.app.doctor")
        doctor = next(
            one for one in module.tree.body if isinstance(one, ast.AsyncFunctionDef) and one.name == "examine"
        )
        returned = self.waiting(doctor, set(), module)
        return f"{opened}\ndef doctor({self.arguments(doctor.args, module)}) -> {returned}: ..."


def resolved(module: str, name: str) -> object:
    """Return what a name is; some are offered by several modules."""
    return getattr(importlib.import_module(module), name)


def closing() -> dict[str, list[str]]:
    """Return what a Muster has for `with`."""
    return {
        "close": [
            "    def close(self) -> None:",
            '        """Close it; runs that were driven here can be resumed."""',
            "",
        ],
        "__enter__": ["    def __enter__(self) -> Muster: ..."],
        "__exit__": ["    def __exit__(self, *error: object) -> None: ..."],
    }


def sync_stub() -> str:
    """Return the types of `muster.sync`."""
    return Stub().text()
