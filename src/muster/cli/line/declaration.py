"""What a command declares, read from its source: a help needs no more, and the module may take long to load.

Of the module are run only the imports and the values that the parameters of the function name.
"""

import ast
import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from typing import Any, cast


@cache
def declaration_of(module: str, name: str) -> Callable[..., Any] | None:
    """Return the function of a module with its parameters and its docstring, and without what it does.

    None where that cannot be read from the source alone: the module must be loaded then.
    """
    spec = importlib.util.find_spec(module)
    source = None if spec is None else _source(spec)
    if source is None:
        return None
    tree = ast.parse(source)
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if found is None or found.decorator_list:
        return None
    docstring = ast.get_docstring(found, clean=False) or ""
    found.body, found.returns = [ast.Expr(ast.copy_location(ast.Constant(docstring), found))], None
    needed = _needed(tree, found)
    if needed is None:
        return None
    made: dict[str, Any] = {"__name__": module}
    shortened = ast.fix_missing_locations(ast.Module(body=[*needed, found], type_ignores=[]))
    exec(compile(shortened, spec.origin or module if spec else module, "exec"), made)  # noqa: S102 - our own source
    return cast("Callable[..., Any]", made[name])


def _source(spec: ModuleSpec) -> str | None:
    read = getattr(spec.loader, "get_source", None)
    try:
        return None if read is None else cast("str | None", read(spec.name))
    except OSError:  # installed without it
        return None


def _needed(tree: ast.Module, found: ast.FunctionDef) -> list[ast.stmt] | None:
    """Return the statements that bind what a function names, in their order; None when one of them is a class."""
    binding = {name: (place, node) for place, node in enumerate(tree.body) for name in _bound(node)}
    kept: dict[int, ast.stmt] = {}
    waiting = list(_named(found))
    while waiting:
        name = waiting.pop()
        place, node = binding.get(name, (-1, found))
        if isinstance(node, ast.ClassDef):
            return None  # another one than that of the module
        if isinstance(node, ast.Import | ast.ImportFrom):
            short = kept.setdefault(place, _without_names(node))
            names = cast("ast.ImportFrom", short).names
            names += [alias for alias in node.names if (alias.asname or alias.name) == name and alias not in names]
        elif node is not found and place not in kept:
            kept[place] = node
            waiting += _named(node)
    return [kept[place] for place in sorted(kept)]


def _without_names(node: ast.Import | ast.ImportFrom) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.copy_location(ast.Import(names=[]), node)
    return ast.copy_location(ast.ImportFrom(module=node.module, names=[], level=node.level), node)


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Import(names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign(targets=targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _named(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
