"""A function of the user's as an agent: what it gets, what it may give back, and how it is stopped."""

import asyncio
import contextlib
import functools
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from muster.agents.function import FunctionAgent
from muster.agents.prices import price_from_toml
from muster.agents.service_terms import ServiceTerms
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.services import make_function
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Reply, Request, Stop, ToolCall, Usage, ask
from muster.domain.errors import (
    AgentFailed,
    BadConfiguration,
    BadOutput,
    InvalidRequest,
    NotFound,
    Paid,
    RateLimited,
    TimedOut,
    WireError,
)
from muster.domain.money import Lane, Microdollars
from muster.settings.file import fit
from muster.settings.sections import PythonSection
from muster.testing.agents import CHECKS, Candidate

SOON = Timeouts(call=60.0, grace=10.0)
PROFILE = Profile(name="fn", limiter="python:fn")
DECLARED = ServiceTerms(most=Microdollars(50_000))
PRICED = ServiceTerms(price=price_from_toml(1, 10))
FREE = ServiceTerms()
QUESTION = ask("hi")
SHAPED = replace(QUESTION, schema={"type": "object", "properties": {"a": {"type": "number"}}})


def agent_of(function: Callable[[Request], Awaitable[Any]], terms: ServiceTerms = FREE) -> FunctionAgent:
    return FunctionAgent(profile=PROFILE, function=function, terms=terms)


def returning(result: Any, terms: ServiceTerms = FREE) -> FunctionAgent:
    async def answer(_: Request) -> Any:
        return result

    return agent_of(answer, terms)


async def failure(agent: FunctionAgent, timeouts: Timeouts = SOON, request: Request = QUESTION) -> WireError:
    with pytest.raises(WireError) as caught:
        await agent.call(request, timeouts)
    return caught.value


# What it gets and gives.


async def test_a_function_gets_the_request_and_its_text_is_the_answer() -> None:
    asked: list[Request] = []

    async def answer(request: Request) -> str:
        asked.append(request)
        return f"You said: {request.prompt}"

    request = ask("hello {prompt}", system="Be brief.")
    reply = await agent_of(answer).call(request, SOON)
    assert asked == [request]
    assert reply == Reply(text="You said: hello {prompt}", stop=Stop.END, model="fn")


async def test_a_mapping_says_more() -> None:
    reply = await returning(
        {
            "text": "done",
            "tool_calls": [
                {"name": "search", "arguments": {"q": ("a", "b")}, "result": 3},
                {"id": "c2", "function": {"name": "look", "arguments": '{"x": 1}'}},
                ToolCall(id="c3", name="see", arguments={"y": 2}, result="seen"),
            ],
            "input_tokens": 3,
            "output_tokens": 5,
            "cost_usd": Decimal("0.0000125"),
            "data": {"a": (1, 2)},
        }
    ).call(ask("hi"), SOON)
    assert reply == Reply(
        text="done",
        stop=Stop.END,
        tool_calls=(
            ToolCall(id="call_0", name="search", arguments={"q": ["a", "b"]}, result="3"),
            ToolCall(id="c2", name="look", arguments={"x": 1}),
            ToolCall(id="c3", name="see", arguments={"y": 2}, result="seen"),
        ),
        usage=Usage(input=3, output=5),
        cost=Microdollars(13),
        data={"a": [1, 2]},
        model="fn",
    )


async def test_data_alone_is_an_answer_and_so_are_tool_calls() -> None:
    reply = await returning({"data": {"a": 1}}).call(ask("hi"), SOON)
    assert (reply.text, reply.data) == ('{"a":1}', {"a": 1})
    reply = await returning({"text": None, "tool_calls": [{"name": "search"}]}).call(ask("hi"), SOON)
    assert (reply.text, reply.stop) == ("", Stop.TOOL_USE)


@pytest.mark.parametrize(
    "result",
    [
        'Here: {"a": 1}',
        {"text": "Here.", "data": {"a": 1}},
        Reply(text='{"a": 1}', stop=Stop.END),
        Reply(text="Here.", stop=Stop.END, data={"a": 1}),
    ],
    ids=["a text", "a mapping", "a reply", "a reply with data"],
)
async def test_an_answer_that_was_asked_for_as_data_is_given_as_data(result: Any) -> None:
    assert (await returning(result).call(SHAPED, SOON)).data == {"a": 1}


@pytest.mark.parametrize(
    ("result", "words", "cost"),
    [
        ("no", "holds no JSON, and a schema was asked for: 'no'", None),
        ({"text": '{"a": 1}', "data": {"a": "x"}, "cost_usd": 0.02}, "does not fit the schema: $.a: 'x' is", 20_000),
        ({"data": {"a": 2**70}, "cost_usd": 0.02}, "does not fit the schema: it holds an integer", 20_000),
        (Reply(text='{"a": "x"}', stop=Stop.END, cost=Microdollars(7)), "does not fit the schema: $.a: 'x' is", 7),
    ],
)
async def test_an_answer_of_another_shape_is_bad_output_and_paid_for(result: Any, words: str, cost: int | None) -> None:
    error = await failure(returning(result, DECLARED), request=SHAPED)
    assert isinstance(error, BadOutput)
    assert error.message.startswith(f"agent 'fn': its answer {words}")
    assert (error.paid, error.cost) == ((Paid.UNKNOWN, 0) if cost is None else (Paid.YES, cost))


async def test_a_bad_answer_that_counts_tokens_is_paid_for_by_its_price() -> None:
    error = await failure(returning({"text": "no", "input_tokens": 3, "output_tokens": 5}, PRICED), request=SHAPED)
    assert (error.paid, error.cost) == (Paid.YES, 53)


async def test_a_bad_reply_that_a_subscription_covers_is_imputed() -> None:
    error = await failure(returning(Reply(text="no", stop=Stop.END, lane=Lane.IMPUTED)), request=SHAPED)
    assert (error.paid, error.imputed) == (Paid.YES, True)


@pytest.mark.parametrize("stop", [Stop.REFUSED, Stop.MAX_TOKENS, Stop.TOOL_USE])
async def test_an_answer_that_is_none_needs_no_data(stop: Stop) -> None:
    assert (await returning(Reply(text="I", stop=stop)).call(SHAPED, SOON)).data is None


async def test_a_schema_that_is_none_is_refused_before_the_function_runs() -> None:
    asked: list[Request] = []

    async def answer(request: Request) -> str:
        asked.append(request)
        return "{}"

    with pytest.raises(InvalidRequest, match="not a JSON Schema"):
        await agent_of(answer).call(replace(ask("hi"), schema={"type": "thing"}), SOON)
    assert asked == []


async def test_a_reply_is_taken_at_its_word() -> None:
    own = Reply(
        text="cut",
        stop=Stop.MAX_TOKENS,
        usage=Usage(input=1, output=2, cache_read=3),
        cost=Microdollars(7),
        lane=Lane.IMPUTED,
        model="inner",
        id="x",
    )
    assert await returning(own, DECLARED).call(ask("hi"), SOON) == own
    assert await returning(own, PRICED).call(ask("hi"), SOON) == own
    assert (await returning(Reply(text="x", stop=Stop.END), DECLARED).call(ask("hi"), SOON)).cost == 0
    counted = Reply(text="x", stop=Stop.END, usage=Usage(input=1, output=2))
    assert (await returning(counted, PRICED).call(ask("hi"), SOON)).cost == 21


UNFIT: dict[str, tuple[Any, str]] = {
    "nothing": (None, "None, which is not an answer"),
    "a number": (3, "int"),
    "bytes": (b"x", "bytes"),
    "a list": (["x"], "list"),
    "no text": ({}, "text is None"),
    "a text that is none": ({"text": 3}, "text is a value of the type int"),
    "an unknown part": ({"text": "x", "answer": "y"}, "'answer'"),
    "tool calls that are none": ({"text": "x", "tool_calls": "search"}, "tool_calls"),
    "a tool call without a name": ({"text": "x", "tool_calls": [{"id": "c"}]}, "tool_calls"),
    "a number for tool calls": ({"text": "x", "tool_calls": 3}, "tool_calls"),
    "arguments that are no JSON": ({"tool_calls": [{"name": "x", "arguments": {"a": {1}}}]}, "tool_calls is not plain"),
    "data that is no JSON": ({"data": {1, 2}}, "data is not plain JSON"),
    "a reply without a text": (Reply(text=None, stop=Stop.END), "text is not of the type str"),  # type: ignore[arg-type]
    "a reply with odd data": (Reply(text="", stop=Stop.END, data=object()), "data is not plain JSON"),
}


@pytest.mark.parametrize(("result", "words"), UNFIT.values(), ids=UNFIT.keys())
async def test_anything_else_is_bad_output(result: Any, words: str) -> None:
    error = await failure(returning(result))
    assert isinstance(error, BadOutput)
    assert error.message.startswith("agent 'fn': the function returned ")
    assert words in error.message
    assert error.paid is Paid.NO


# What it costs.


@pytest.mark.parametrize(
    "result",
    [
        {"text": "x", "input_tokens": "3"},
        {"text": "x", "output_tokens": -1},
        {"text": "x", "cost_usd": "much"},
        {"text": "x", "cost_usd": -0.1},
        {"text": "x", "cost_usd": float("nan")},
        {"text": "x", "cost_usd": 0.1, "input_tokens": 2**60},
        Reply(text="x", stop=Stop.END, cost=Microdollars(-1)),
        Reply(text="x", stop=Stop.END, cost=True),  # type: ignore[arg-type]
        Reply(text="x", stop=Stop.END, cost=float("inf")),  # type: ignore[arg-type]
        Reply(text="x", stop=Stop.END, usage=Usage(output=-5)),
    ],
)
async def test_figures_that_cannot_be_right_are_booked_as_the_reservation_and_the_answer_stands(result: Any) -> None:
    agent = returning(result, PRICED)
    most = agent.quote(ask("hi")).most
    reply = (await agent.call(ask("hi"), SOON)).booked(most)
    assert (reply.text, reply.cost, reply.lane) == ("x", most, Lane.UNCERTAIN)


async def test_a_function_that_says_nothing_of_its_cost_is_booked_as_declared() -> None:
    agent = returning("x", DECLARED)
    assert agent.quote(ask("hi")).most == 50_000
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.cost, reply.lane) == (50_000, Lane.UNCERTAIN)
    reply = await returning({"text": "x", "cost_usd": 0.01}, DECLARED).call(ask("hi"), SOON)
    assert (reply.cost, reply.lane) == (10_000, Lane.BILLED)


async def test_a_price_counts_tokens_or_else_bytes() -> None:
    reply = await returning({"text": "x", "input_tokens": 3, "output_tokens": 5}, PRICED).call(ask("hi"), SOON)
    assert reply.cost == 53
    reply = await returning("four", PRICED).call(ask("hi"), SOON)
    assert reply.usage.output == 4
    assert reply.cost == reply.usage.input + 40 > 42


async def test_failures_may_have_cost_what_was_declared() -> None:
    async def breaks(_: Request) -> str:
        raise ValueError("no")

    assert (await failure(agent_of(breaks, DECLARED))).paid is Paid.UNKNOWN
    assert (await failure(agent_of(breaks))).paid is Paid.NO
    assert (await failure(returning(3, DECLARED))).paid is Paid.UNKNOWN
    said = await failure(returning({"text": 3, "cost_usd": 0.01}, DECLARED))
    assert (said.paid, said.cost) == (Paid.YES, 10_000)


# How it fails.


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be told")


RAISED: dict[str, tuple[BaseException, str]] = {
    "an error": (ValueError("out of paper"), "raised ValueError: out of paper"),
    "an error that cannot be shown": (Unspeakable(), "Unspeakable"),
    "an exit": (SystemExit(3), "raised SystemExit: 3"),
    "an error that is not of an exchange": (NotFound("no such run"), "no such run"),
}


@pytest.mark.parametrize(("raised", "words"), RAISED.values(), ids=RAISED.keys())
async def test_an_exception_is_told_with_the_lines_that_led_to_it(raised: BaseException, words: str) -> None:
    async def print_it(_: Request) -> str:
        raise raised

    error = await failure(agent_of(print_it))
    assert type(error) is AgentFailed
    assert error.message.startswith("agent 'fn': the function raised ")
    assert words in error.message
    assert "in print_it" in error.log
    assert "raise raised" in error.log
    assert "agents/function.py" not in error.log, "our own lines help nobody"


async def test_a_long_traceback_keeps_its_end() -> None:
    async def falls(request: Request, depth: int = 90) -> str:
        if depth:
            return await falls(request, depth - 1)
        raise ValueError("x" * 5000)

    error = await failure(agent_of(falls))
    assert error.record()["log"].count("\n") < 20
    assert "ValueError" in error.record()["log"]
    assert len(error.message) < 2100


async def test_an_error_of_an_exchange_passes_as_it_is() -> None:
    limited = RateLimited("slow down", retry_after=3.0)

    async def limits(_: Request) -> str:
        raise limited

    assert await failure(agent_of(limits, DECLARED)) is limited
    assert limited.paid is Paid.NO


async def test_a_function_that_cancels_itself_has_failed() -> None:
    async def gives_up(_: Request) -> str:
        raise asyncio.CancelledError

    error = await failure(agent_of(gives_up))
    assert type(error) is AgentFailed
    assert "canceled itself" in error.message


# How it is stopped.


async def test_a_function_whose_time_is_over_is_canceled_and_waited_for() -> None:
    cleaned = asyncio.Event()

    async def dawdles(_: Request) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()
        return "never"

    error = await failure(agent_of(dawdles, DECLARED), Timeouts(call=0.05, grace=60.0))
    assert type(error) is TimedOut
    assert error.message == "agent 'fn': timed out after 0.05s; the function was canceled"
    assert "timeout_secs" in error.suggestions[0]
    assert error.paid is Paid.UNKNOWN
    assert cleaned.is_set()


async def stubborn(_: Request) -> str:
    """Go on whatever happens."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def test_a_function_that_swallows_its_cancellation_holds_nobody_up() -> None:
    agent = agent_of(stubborn)
    before = asyncio.all_tasks()
    async with asyncio.timeout(60):
        assert type(await failure(agent, Timeouts(call=0.05, grace=0.1))) is TimedOut
        if left := asyncio.all_tasks() - before:
            await asyncio.wait(left)  # it was broken off where it stood, and ends by itself


async def test_a_canceled_call_does_not_wait_long_for_a_stubborn_function() -> None:
    started = asyncio.Event()

    async def begins(request: Request) -> str:
        started.set()
        return await stubborn(request)

    call = asyncio.ensure_future(agent_of(begins).call(ask("hi"), Timeouts(grace=0.1)))
    await started.wait()
    call.cancel()
    done, _ = await asyncio.wait({call}, timeout=60)
    assert done
    assert call.cancelled()


async def test_what_still_runs_is_stopped_when_the_agent_is_closed() -> None:
    ended = asyncio.Event()
    started = asyncio.Event()

    async def waits(_: Request) -> str:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    agent = agent_of(waits)
    call = asyncio.ensure_future(agent.call(ask("hi"), SOON))
    await started.wait()
    await agent.close()
    assert ended.is_set()
    await asyncio.wait({call})
    assert isinstance(call.exception(), AgentFailed)


def test_a_program_ends_although_its_function_does_not_want_to(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import asyncio\n"
        "from muster.domain.agent import Profile, Timeouts\n"
        "from muster.domain.call import ask\n"
        "from muster.domain.errors import TimedOut\n"
        "from muster.agents.function import FunctionAgent\n"
        "async def stubborn(request):\n"
        "    while True:\n"
        "        try: await asyncio.sleep(3600)\n"
        "        except asyncio.CancelledError: pass\n"
        "async def main():\n"
        "    agent = FunctionAgent(profile=Profile(name='fn', limiter='fn'), function=stubborn)\n"
        "    try: await agent.call(ask('hi'), Timeouts(call=0.05, grace=0.1))\n"
        "    except TimedOut: print('timed out')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "timed out\n", "")


# What may be a function.


class Asynchronous:
    async def __call__(self, request: Request) -> str:
        return request.prompt

    async def method(self, request: Request) -> str:
        return request.prompt


class Synchronous:
    def __call__(self, request: Request) -> str:
        return request.prompt


async def plain(request: Request, prefix: str = "") -> str:
    return prefix + request.prompt


@pytest.mark.parametrize(
    "function", [plain, Asynchronous(), Asynchronous().method, functools.partial(plain, prefix="")]
)
async def test_whatever_is_async_may_be_a_function(function: Any) -> None:
    assert (await agent_of(function).call(ask("hi"), SOON)).text == "hi"


@pytest.mark.parametrize("function", [len, Synchronous(), Synchronous, Asynchronous, lambda request: "x", 3, None])
def test_what_is_not_async_is_refused(function: Any) -> None:
    with pytest.raises(BadConfiguration, match="the function of agent 'fn' is not async"):
        agent_of(function)


# Made from a section.


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with modules of the user's; what is imported from it is forgotten again."""
    (tmp_path / "test_function_mine.py").write_text(
        "import muster\n"
        "class Team:\n"
        "    async def answer(self, request: muster.Request) -> str:\n"
        "        return request.prompt.upper()\n"
        "team = Team()\n"
        "async def answer(request: muster.Request) -> str:\n"
        "    return request.prompt[::-1]\n"
        "def blocks(request): return 'x'\n"
    )
    (tmp_path / "test_function_broken.py").write_text("raise AttributeError('a broken module')\n")
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("test_function_"):
            del sys.modules[name]


def made(function: str, folder: Path, **settings: Any) -> Any:
    section = fit({"kind": "python", "function": function, **settings}, PythonSection, ("agents", "mine"))
    return make_function("fn", section, profile=profile_of("fn", section), folder=folder)


async def test_a_function_is_found_beside_the_settings(folder: Path) -> None:
    assert (await made("test_function_mine:answer", folder).call(ask("abc"), SOON)).text == "cba"
    assert (await made("test_function_mine:team.answer", folder).call(ask("abc"), SOON)).text == "ABC"
    assert sys.path.count(str(folder)) == 1


def test_a_section_says_what_a_call_costs_and_how_long_it_takes(folder: Path) -> None:
    agent = made("test_function_mine:answer", folder, budget_usd=0.25, timeout_secs=9)
    assert agent.quote(ask("hi")).most == 250_000
    assert agent.profile.timeouts == Timeouts(call=9)
    priced = made("test_function_mine:answer", folder, price={"input": 0, "output": 10})
    assert priced.quote(ask("hi")).most == 20_480


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("test_function_mine", "is not a function"),
        (":answer", "is not a function"),
        ("test_function_mine:", "is not a function"),
        ("test_function_nowhere:answer", "test_function_nowhere cannot be imported"),
        ("test_function_broken:answer", "cannot be imported: AttributeError('a broken module')"),
        ("test_function_mine:nobody", "nobody was not found in test_function_mine"),
        ("test_function_mine:blocks", "is not async"),
        ("test_function_mine:Team", "is not async"),
        (".relative:answer", "cannot be imported"),
    ],
)
def test_a_function_that_cannot_be_had_is_told_with_why(folder: Path, function: str, words: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        made(function, folder)
    assert words in caught.value.message
    assert "fn" in caught.value.message


# The contract of all agents.


@pytest.fixture
def candidate() -> Candidate:
    reached, hangs = asyncio.Event(), [False]

    async def answer(request: Request) -> dict[str, Any]:
        if hangs[0]:
            hangs[0] = False
            reached.set()
            await asyncio.Event().wait()
        return {"text": request.prompt, "input_tokens": 9, "output_tokens": 1}

    return Candidate(
        agent=agent_of(answer, PRICED),
        request=ask("Say it:  🎉", system="Be brief."),
        hang=lambda: hangs.__setitem__(0, True),
        reached=reached.wait,
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
async def test_a_function_keeps_the_contract_of_agents(
    candidate: Candidate, check: Callable[[Candidate], Awaitable[None]]
) -> None:
    await check(candidate)
