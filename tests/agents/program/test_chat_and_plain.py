"""Chat mode and plain mode through real processes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program.agent import decode_chat, encode_chat, encode_plain
from muster.domain.call import Message, Reply, Request, Role, Stop, Tool, ToolCall, Usage, ask
from muster.domain.canonical import Json
from muster.domain.errors import BadExit, BadOutput, InvalidRequest, NotStarted, Paid, TimedOut
from muster.domain.money import Lane, Microdollars
from tests.agents.program.stage import PATIENT, bash, program, says, spelled

CALL = ToolCall(id="call_1", name="weather", arguments={"city": "Bonn"})
TALK = (
    Message(role=Role.USER, text="Weather?"),
    Message(role=Role.ASSISTANT, tool_calls=(CALL,)),
    Message(role=Role.TOOL, text="sunny", tool_call_id="call_1"),
    Message(role=Role.ASSISTANT, text="Sunny."),
    Message(role=Role.USER, text="And tomorrow?"),
)
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}


async def chatted(processes: ProcessRegistry, output: str, request: Request | None = None) -> Reply:
    return await bash(processes, says(output), mode="chat").call(request or ask("Hello"), PATIENT)


async def refused(processes: ProcessRegistry, answer: Json) -> BadOutput:
    with pytest.raises(BadOutput, match="agent 'critic': its answer is not in the shape of chat mode") as caught:
        await chatted(processes, spelled(answer))
    return caught.value


# ── plain ──


async def test_a_single_message_goes_in_as_it_is_and_comes_out_as_it_is(processes: ProcessRegistry) -> None:
    prompt = 'say {this} and "that"\n  $HOME %s {{}} é😀'
    reply = await program(processes, "cat", mode="plain").call(ask(prompt), PATIENT)
    assert (reply.text, reply.stop, reply.data, reply.cost) == (prompt, Stop.END, None, 0)


async def test_a_request_adds_variables_of_its_own_for_one_call(processes: ProcessRegistry) -> None:
    agent = bash(processes, 'cat >/dev/null; echo "$MODE $KEPT"', mode="plain", env={"MODE": "usual", "KEPT": "yes"})
    strict = replace(ask("hi"), environment={"MODE": "$(touch x) strict"})
    assert (await agent.call(strict, PATIENT)).text == "$(touch x) strict yes"
    assert (await agent.call(ask("hi"), PATIENT)).text == "usual yes"


async def test_a_bad_exit_shows_how_the_output_ends_where_output_counts(
    processes: ProcessRegistry,
) -> None:
    script = "cat >/dev/null; printf 'é%.0s' $(seq 1 3000); echo; echo ' it  stopped'"
    with pytest.raises(BadExit) as caught:
        await bash(processes, f"{script}; exit 2", mode="plain", exits=(0, 1)).call(ask("hi"), PATIENT)
    assert caught.value.message.endswith("é it stopped")
    assert len(caught.value.message) < 700
    with pytest.raises(BadExit, match=r"2: broken; its output ends: .* it stopped$"):
        await bash(processes, f"{script}; echo broken >&2; exit 2", mode="plain", exits=(0,)).call(ask("hi"), PATIENT)


async def test_a_variable_that_cannot_be_one_is_a_failure_of_the_call(processes: ProcessRegistry) -> None:
    with pytest.raises(NotStarted):
        await program(processes, "cat", mode="plain").call(replace(ask("hi"), environment={"A": "b\0c"}), PATIENT)


def test_a_system_prompt_comes_first() -> None:
    assert encode_plain(ask("Hello", system="Be brief.")) == b"Be brief.\n\nHello"


def test_several_messages_are_written_as_turns() -> None:
    assert encode_plain(Request(messages=TALK, system="S")).decode() == (
        'S\n\nUser: Weather?\n\nAssistant: [weather {"city": "Bonn"}]\n\nTool: sunny\n\n'
        "Assistant: Sunny.\n\nUser: And tomorrow?"
    )


def test_half_a_character_in_a_prompt_is_written_as_an_escape() -> None:
    assert encode_plain(ask("\ud83d")) == b"\\ud83d"


async def test_only_the_end_of_the_last_line_is_taken_from_a_plain_answer(processes: ProcessRegistry) -> None:
    reply = await bash(processes, says('\n {"text": "no"}\n\n'), mode="plain").call(ask("x"), PATIENT)
    assert reply.text == '\n {"text": "no"}'


@pytest.mark.parametrize("mode", ["plain", "chat"])
async def test_bytes_that_are_no_text_survive_as_escapes(processes: ProcessRegistry, mode: str) -> None:
    reply = await bash(processes, "cat >/dev/null; printf 'caf\\xe9 \\xff'; printf '\\xfe' >&2", mode=mode).call(
        ask("x"), PATIENT
    )
    assert reply.text == "caf\\xe9 \\xff"
    assert reply.trace is not None
    assert reply.trace.log == "\\xfe"


@pytest.mark.parametrize("mode", ["plain", "chat"])
async def test_a_failed_program_is_a_failed_call_in_every_mode(processes: ProcessRegistry, mode: str) -> None:
    with pytest.raises(BadExit, match="exited with code 3: broke"):
        await bash(processes, "echo broke >&2; exit 3", mode=mode).call(ask("x"), PATIENT)
    with pytest.raises(BadOutput, match="no output"):
        await bash(processes, "cat >/dev/null; echo", mode=mode).call(ask("x"), PATIENT)
    with pytest.raises(TimedOut, match=r"timed out after 0.2s"):
        await bash(processes, "sleep 999", mode=mode).call(ask("x"), replace(PATIENT, call=0.2))


# ── chat: what goes in ──


def sent(request: Request) -> Any:
    return json.loads(encode_chat(request, "critic"))


def test_only_what_is_set_is_sent() -> None:
    assert sent(ask("Hello")) == {"messages": [{"role": "user", "content": "Hello"}]}


def test_everything_that_is_set_is_sent() -> None:
    request = Request(
        messages=TALK,
        system="S",
        tools=(Tool(name="weather", description="d"),),
        max_tokens=5,
        temperature=0.0,
        top_p=0.5,
        seed=0,
        stop=("END",),
        schema=SCHEMA,
        volatile={"x": 1},
    )
    call = {"id": "call_1", "name": "weather", "arguments": {"city": "Bonn"}}
    assert sent(request) == {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "sunny", "tool_call_id": "call_1"},
            {"role": "assistant", "content": "Sunny."},
            {"role": "user", "content": "And tomorrow?"},
        ],
        "system": "S",
        "tools": [{"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}}],
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "seed": 0,
        "stop": ["END"],
        "schema": SCHEMA,
    }


async def test_a_chat_program_reads_what_was_sent(processes: ProcessRegistry) -> None:
    request = ask('{"prompt"} {{}} 😀', system="S")
    reply = await bash(processes, "cat >&2; echo ok", mode="chat").call(request, PATIENT)
    assert reply.trace is not None
    assert json.loads(reply.trace.log) == sent(request)


async def test_a_request_that_is_no_json_is_refused_before_anything_starts(processes: ProcessRegistry) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        await chatted(processes, "x", replace(ask("x"), top_p=float("nan")))


# ── chat: what comes out ──


@pytest.mark.parametrize("name", ["text", "content"])
async def test_the_text_of_an_answer_has_either_name(processes: ProcessRegistry, name: str) -> None:
    reply = await chatted(processes, f"log {{x}}\n{spelled({'n': 1})}\n{spelled({name: 'Hi'})}\nlog }}")
    assert (reply.text, reply.stop, reply.tool_calls) == ("Hi", Stop.END, ())


async def test_an_answer_says_tools_usage_cost_and_session(processes: ProcessRegistry) -> None:
    answer = {
        "text": None,
        "tool_calls": [{"name": "weather", "arguments": {"city": "Bonn"}}, {"id": "mine", "name": "now"}],
        "usage": {"input_tokens": 3, "output_tokens": 4},
        "cost_usd": 0.002,
        "session": "s1",
    }
    reply = await chatted(processes, spelled(answer))
    assert reply.tool_calls == (CALL, ToolCall(id="mine", name="now"))
    assert (reply.text, reply.stop, reply.usage) == ("", Stop.TOOL_USE, Usage(input=3, output=4))
    assert (reply.cost, reply.lane) == (2_000, Lane.BILLED)
    assert reply.trace is not None
    assert reply.trace.session == "s1"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("end", Stop.END), ("length", Stop.MAX_TOKENS), ("refusal", Stop.REFUSED), ("odd", Stop.OTHER), (None, Stop.END)],
)
async def test_an_answer_says_why_it_stopped(processes: ProcessRegistry, reason: str | None, stop: Stop) -> None:
    assert (await chatted(processes, spelled({"text": "x", "stop_reason": reason}))).stop is stop


@pytest.mark.parametrize("output", ["Hello.\n", '{"answer": 1}\n', "{broken\n"])
async def test_an_output_without_an_answer_in_it_is_the_answer(processes: ProcessRegistry, output: str) -> None:
    assert (await chatted(processes, output)).text == output.strip()


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ({}, "must be a list"),
        (["weather"], r"tool_calls\[0\] must be an object"),
        ([{"arguments": {}}], "needs the name"),
        ([{"name": ""}], "needs the name"),
        ([{"name": 7}], "needs the name"),
        ([{"name": "a"}, {"name": "b", "arguments": "{}"}], r"tool_calls\[1\]: arguments must be an object"),
        ([{"name": "a", "id": 1}], "id must be a string"),
        ([{"name": "a", "arguments": {"n": 2**70}}], "64 bits"),
    ],
)
async def test_a_tool_call_that_is_none_is_refused_and_its_cost_counts(
    processes: ProcessRegistry, calls: Json, why: str
) -> None:
    error = await refused(processes, {"text": "x", "tool_calls": calls, "cost_usd": 0.001})
    assert (error.paid, error.cost) == (Paid.YES, 1_000)
    with pytest.raises(BadOutput, match=why):
        decode_chat(spelled({"tool_calls": calls}).encode())


@pytest.mark.parametrize(
    "fields",
    [
        {"stop_reason": 1},
        {"session": []},
        {"content": 3},
    ],
)
async def test_other_fields_in_a_wrong_shape_are_refused(
    processes: ProcessRegistry, fields: Mapping[str, Json]
) -> None:
    await refused(processes, {"text": "", **fields})


@pytest.mark.parametrize("cost", ["free", -1, True, [], 10**12])
async def test_a_cost_that_cannot_be_right_is_booked_as_the_reservation_and_the_answer_stands(
    processes: ProcessRegistry, cost: Json
) -> None:
    agent = bash(processes, says(spelled({"text": "hi", "cost_usd": cost})), mode="chat", most=Microdollars(700))
    reply = await agent.call(ask("x"), PATIENT)
    assert (reply.text, reply.cost, reply.lane) == ("hi", 700, Lane.UNCERTAIN)


@pytest.mark.parametrize("usage", [[], {"input_tokens": -1}, {"output_tokens": True}, {"input_tokens": 2**60}])
async def test_counts_that_cannot_be_right_are_left_out(processes: ProcessRegistry, usage: Json) -> None:
    agent = bash(processes, says(spelled({"text": "hi", "cost_usd": 0.25, "usage": usage})), mode="chat")
    reply = await agent.call(ask("x"), PATIENT)
    assert (reply.text, reply.cost, reply.usage) == ("hi", 250_000, Usage())


async def test_a_chat_program_that_fails_may_say_what_it_cost(processes: ProcessRegistry) -> None:
    script = says(spelled({"error": "no", "cost_usd": 0.25})) + "; exit 1"
    with pytest.raises(BadExit) as caught:
        await bash(processes, script, mode="chat", most=Microdollars(1_000_000)).call(ask("x"), PATIENT)
    assert (caught.value.paid, caught.value.cost) == (Paid.YES, 250_000)


# ── schemas ──


@pytest.mark.parametrize("mode", ["plain", "chat"])
async def test_an_answer_to_a_schema_is_given_as_data(processes: ProcessRegistry, mode: str) -> None:
    output = 'Here it is:\n```json\n{"score": 0.8}\n```\n'
    reply = await bash(processes, says(output), mode=mode).call(replace(ask("x"), schema=SCHEMA), PATIENT)
    assert (reply.data, reply.text) == ({"score": 0.8}, output.strip())


async def test_the_text_of_a_chat_answer_is_what_the_schema_is_about(processes: ProcessRegistry) -> None:
    reply = await chatted(processes, spelled({"text": '{"score": 1}'}), replace(ask("x"), schema=SCHEMA))
    assert reply.data == {"score": 1}


@pytest.mark.parametrize("text", ["no", '{"score": ', '{"score": NaN}'])
async def test_an_answer_to_a_schema_must_be_json_and_its_cost_counts(processes: ProcessRegistry, text: str) -> None:
    with pytest.raises(BadOutput, match="agent 'critic': its answer") as caught:
        await chatted(processes, spelled({"text": text, "cost_usd": 1}), replace(ask("x"), schema=SCHEMA))
    assert (caught.value.paid, caught.value.cost) == (Paid.YES, 1_000_000)


async def test_an_answer_must_fit_the_schema(processes: ProcessRegistry) -> None:
    request = replace(ask("x"), schema={"properties": {"score": {"maximum": 1}}})
    right = bash(processes, says(spelled({"score": 1})), mode="plain")
    assert (await right.call(request, PATIENT)).data == {"score": 1}
    wrong = bash(processes, says(spelled({"score": 2})), mode="plain")
    with pytest.raises(BadOutput, match=r"does not fit the schema: \$\.score: 2 is greater"):
        await wrong.call(request, PATIENT)


async def test_a_schema_that_is_none_is_refused_before_the_program_starts(processes: ProcessRegistry) -> None:
    agent = bash(processes, "echo started > started.txt", mode="plain")
    with pytest.raises(InvalidRequest, match="not a JSON Schema"):
        await agent.call(replace(ask("x"), schema={"type": "thing"}), PATIENT)


async def test_the_content_of_a_proposal_is_what_the_schema_is_about(processes: ProcessRegistry) -> None:
    data = {"thought_process": "t", "content": '{"score": 1}'}
    request = replace(ask("x"), schema=SCHEMA)
    assert (await bash(processes, says(spelled(data))).call(request, PATIENT)).data == data
    with pytest.raises(BadOutput, match="holds no JSON"):
        await bash(processes, says(spelled({**data, "content": "no"}))).call(request, PATIENT)


async def test_an_answer_that_wants_tools_is_not_yet_the_answer_to_a_schema(processes: ProcessRegistry) -> None:
    output = spelled({"tool_calls": [{"name": "now"}]})
    reply = await chatted(processes, output, replace(ask("x"), schema=SCHEMA))
    assert (reply.stop, reply.data) == (Stop.TOOL_USE, None)
