"""The protocols of the store: one ability each, and nothing that reads blocks the caller."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, get_origin, get_type_hints

from muster.store import base
from muster.store.base import Store

MOST_METHODS = 4

# These read nothing: a check of arguments, and a word to the writer.
AT_ONCE = {"RunOffers.watch", "BatchPlanning.check", "StoreControl.give_up", "StoreControl.hide", "StoreTime.now"}


def protocols() -> Iterator[type]:
    for name in base.__all__:
        if getattr(getattr(base, name), "_is_protocol", False):
            yield getattr(base, name)


def methods(protocol: type) -> dict[str, Callable[..., Any]]:
    return {name: found for name, found in vars(protocol).items() if inspect.isfunction(found) and name[0] != "_"}


def is_awaited(method: Callable[..., Any]) -> bool:
    returned = get_origin(get_type_hints(method)["return"])
    return inspect.iscoroutinefunction(method) or returned in (Awaitable, AsyncIterator)


def test_a_protocol_has_one_to_four_methods_or_is_the_sum_of_others() -> None:
    sizes = {protocol.__name__: len(methods(protocol)) for protocol in protocols() if protocol is not Store}
    composites = {protocol.__name__ for protocol in protocols() if len(protocol.__mro__) > 4}

    assert {name for name, size in sizes.items() if size > MOST_METHODS} == set()
    assert {name for name, size in sizes.items() if size == 0} == composites


def test_whatever_reads_or_writes_the_store_is_awaited() -> None:
    at_once = {
        f"{protocol.__name__}.{name}"
        for protocol in protocols()
        for name, method in methods(protocol).items()
        if not is_awaited(method)
    }

    assert at_once == AT_ONCE
