import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from muster.agents.http.pool import PATIENCE, Address, dial, in_turn, reach

SIX, FOUR = socket.AF_INET6, socket.AF_INET


def at(family: int, name: str) -> Address:
    return (family, socket.SOCK_STREAM, 0, "", (name, 80))


def loopback(port: int) -> Address:
    return (FOUR, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(leave, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose queue is full, so that nobody else is let in or turned away."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        queue = [socket.socket() for _ in range(4)]
        for waiting in queue:
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for waiting in queue:
            waiting.close()


def test_families_take_turns_in_the_order_of_the_system() -> None:
    a, b, c, d = at(SIX, "a"), at(SIX, "b"), at(SIX, "c"), at(FOUR, "d")
    assert in_turn([a, b, c, d]) == [a, d, b, c]
    assert in_turn([d, a, b]) == [d, a, b]
    assert in_turn([a]) == [a]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_names_and_numbers_are_reached(port: int, host: str) -> None:
    (await dial(host, port)).close()


async def test_an_address_that_refuses_is_passed_over_at_once(port: int, unused_port: int) -> None:
    refusing = [loopback(unused_port)] * 200
    async with asyncio.timeout(len(refusing) * PATIENCE / 2):
        (await reach([*refusing, loopback(port)])).close()


async def test_an_address_that_is_silent_does_not_hold_up_the_next(port: int, silent_port: int) -> None:
    reached = await reach([loopback(silent_port), loopback(port), loopback(silent_port)])
    assert reached.getpeername()[1] == port
    reached.close()


async def test_when_nobody_answers_the_first_error_is_told(unused_port: int) -> None:
    for addresses in ([loopback(unused_port)], [loopback(unused_port)] * 3):
        with pytest.raises(ConnectionRefusedError):
            await reach(addresses)


@pytest.mark.parametrize("attempts", [1, 3])
async def test_canceled_at_any_instant_it_leaves_no_socket_behind(port: int, attempts: int) -> None:
    for turns in range(20):
        call = asyncio.create_task(reach([loopback(port)] * attempts))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        for reached in await asyncio.gather(call, return_exceptions=True):
            if isinstance(reached, socket.socket):
                reached.close()
    await asyncio.sleep(0.01)
    gc.collect()


async def test_what_is_silent_is_left_at_once_when_canceled(silent_port: int) -> None:
    call = asyncio.create_task(reach([loopback(silent_port)] * 3))
    await asyncio.sleep(0.3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
