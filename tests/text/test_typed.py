"""Values of declared types: prepared at their first use, once at a time, whoever uses them."""

import os
import signal
import sys
import threading
from dataclasses import dataclass, make_dataclass
from functools import partial
from typing import Any, ClassVar

import pytest

from muster.text import typed

THREADS = 8
SECONDS = 30


@dataclass(frozen=True)
class Coordinates:
    x: int
    y: int = 0


@dataclass
class Slow:
    x: int = 0
    evaluated: ClassVar[Any] = None


def nested(depth: int) -> list[type]:
    """Return dataclasses that contain one another, the innermost first; no two calls share one."""
    kinds: list[type] = [Coordinates]
    for number in range(depth):
        kinds.append(make_dataclass(f"Level{number}", [("inner", kinds[-1] | None, None), ("n", int, number)]))
    return kinds


def exit_code_of(work: Any) -> int:
    """Run work in a process of its own, which may die of it."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)  # ends one that waits for ever
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def at_once(*works: Any) -> None:
    """Run all works in threads that begin together; raise when one fails."""
    sys.setswitchinterval(1e-6)
    barrier, done = threading.Barrier(len(works)), []

    def run(work: Any) -> None:
        barrier.wait()
        work()
        done.append(work)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(works)


@pytest.mark.parametrize("way", ["convert", "decode"])
def test_types_that_contain_the_same_types_are_first_used_in_threads_at_once(way: str) -> None:
    def read(kind: Any) -> None:
        value: Any = {"n": 0}
        for number in range(1, 10):
            value = {"inner": value, "n": number}
        found = typed.convert(value, kind) if way == "convert" else typed.Decoder(kind).decode(typed.encode(value))
        assert found.inner.n == 8

    def work() -> None:
        kinds = nested(40)[-2:] * (THREADS // 2)
        at_once(*(partial(read, kind) for kind in kinds))

    assert [exit_code_of(work) for _ in range(10)] == [0] * 10


def test_a_process_that_is_forked_while_a_type_is_prepared_can_read_it() -> None:
    begun, forking = threading.Event(), threading.Event()

    def evaluated() -> type:  # while msgspec looks at the annotations of a type
        begun.set()
        forking.wait()
        return int

    def work() -> None:
        sys.setswitchinterval(1.0)  # so that the fork comes next, unless it waits
        Slow.__annotations__["x"] = "evaluated()"
        Slow.evaluated = staticmethod(evaluated)
        os.register_at_fork(before=forking.set)
        preparing = threading.Thread(target=lambda: typed.convert({}, Slow))
        preparing.start()
        begun.wait()
        assert exit_code_of(lambda: typed.convert({"x": 1}, Slow)) == 0
        preparing.join()

    assert exit_code_of(work) == 0


def test_a_decoder_costs_nothing_before_its_first_use() -> None:
    unreadable: Any = make_dataclass("Either", [("which", Coordinates | make_dataclass("Other", []))])
    decoder = typed.Decoder(unreadable)
    for _ in range(2):
        with pytest.raises(TypeError, match="more than one dataclass"):
            decoder.decode(b"{}")


def test_a_value_of_another_type_is_told_in_words() -> None:
    with pytest.raises(typed.ValidationError, match=r"Expected `int`, got `str` - at `\$.x`"):
        typed.convert({"x": "1"}, Coordinates)
    assert typed.convert({"x": 1}, Coordinates) == Coordinates(1)
