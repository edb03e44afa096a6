"""The protocols of the store: each is what somebody is annotated with, and nothing that reads blocks the caller."""

import ast
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, get_origin, get_type_hints

from muster.store import base
from tests.test_rooms import nodes_of, trees, walk

# These read nothing: a check of arguments, and a word to the writer.
AT_ONCE = {
    *("RunOffers.watch", "BatchTable.check", "Maintenance.give_up", "Maintenance.hide", "StoreTime.now"),
    "MediaTable.without_secrets",
}


def protocols() -> Iterator[type]:
    for name in base.__all__:
        if getattr(getattr(base, name), "_is_protocol", False):
            yield getattr(base, name)


def methods(protocol: type) -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"}


def is_awaited(method: Callable[..., Any]) -> bool:
    returned = get_origin(get_type_hints(method)["return"])
    return inspect.iscoroutinefunction(method) or returned in (Awaitable, AsyncIterator)


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in nodes_of(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def names_in_annotations() -> set[str]:
    written = (part for tree in trees().values() for each in annotations(tree) for part in walk(each))
    return {word for part in written for word in words_of(part)}


def words_of(part: ast.AST) -> list[str]:
    match part:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            return [word]
        case ast.Constant(value=str(text)):
            return re.findall(r"\w+", text)
    return []


def test_each_protocol_is_named_in_an_annotation() -> None:
    assert {protocol.__name__ for protocol in protocols()} - names_in_annotations() == set()


def test_whatever_reads_or_writes_the_store_is_awaited() -> None:
    at_once = {
        f"{protocol.__name__}.{name}"
        for protocol in protocols()
        for name, method in methods(protocol).items()
        if not is_awaited(method)
    }

    assert at_once == AT_ONCE
