"""The three kinds of output, and what is no answer in each, with real processes."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from muster.domain.agent import Timeouts
from muster.domain.call import ToolCall, Usage, ask
from muster.domain.errors import AgentFailed, BadExit, BadOutput, NotStarted, Paid, Stalled, TimedOut

from .stage import PATIENT, Stage, call, declared, section_of

JSON: dict[str, Any] = {"output": "json", "answer": "$.text"}
LINES: dict[str, Any] = {"output": "jsonl", "answer": "$.text", "ends": "$.end", "delta": "$.part"}

TOOLS: dict[str, Any] = {"tool_name": "$.tool", "tool_id": "$.id", "tool_arguments": "$.with", "tool_done": "$.done"}


# Text


async def test_text_is_all_that_was_written(stage: Stage) -> None:
    agent = stage.python("import sys; print('to', sys.stdin.read()); print('be', file=sys.stderr)")
    deltas: list[str] = []
    reply = await agent.call(ask("you\n"), PATIENT, deltas.append)
    assert (reply.text, deltas) == ("to you", ["to you"])
    assert reply.trace is not None
    assert reply.trace.log == "be\n"


async def test_text_with_an_exit_code_is_no_answer(stage: Stage) -> None:
    with pytest.raises(BadExit, match=r"exited with code 7 without an answer: no$"):
        await call(stage.python("import sys; print('half'); sys.exit('no' and (sys.stderr.write('no') and 7))"))


async def test_no_text_is_no_answer(stage: Stage) -> None:
    with pytest.raises(BadOutput, match="ended without an answer; it wrote nothing"):
        await call(stage.python("pass"))


async def test_text_that_is_no_text_is_shown(stage: Stage) -> None:
    reply = await call(stage.python(r"import os; os.write(1, b'a\xffb\n')"))
    assert reply.text == "a\\xffb"


async def test_text_in_time(stage: Stage) -> None:
    with pytest.raises(TimedOut, match=r"timed out after 0\.2s") as caught:
        await call(stage.python("import time; time.sleep(600)"), timeouts=Timeouts(call=0.2, idle=30.0))
    assert caught.value.paid is Paid.UNKNOWN


async def test_input_that_is_not_read_is_noted(stage: Stage) -> None:
    reply = await call(stage.python("import os; os.close(0); print('done')"), "x" * 1_000_000)
    assert reply.trace is not None
    assert (reply.text, reply.trace.note) == ("done", "it did not read all of its input")


async def test_a_program_that_is_not_there_is_told(stage: Stage) -> None:
    with pytest.raises(NotStarted, match="failed to spawn 'no-such-agent'") as caught:
        await call(stage.agent(section_of(command=("no-such-agent",))))
    assert caught.value.paid is Paid.NO


# JSON


async def test_json_is_found_among_other_lines(stage: Stage) -> None:
    program = """
print('loading {config} [1, {"text": "not this"}')
print('{"level": "info", "inner": {"text": "nor this"}}')
print('{\\n  "text": "The \\\\u007banswer}",\\n  "more": [{"text": "nor that"}]\\n}')
print('{"level": "info"} bye {')
"""
    assert (await call(stage.python(program, **JSON))).text == "The {answer}"


async def test_json_that_is_not_there_is_told_with_what_was(stage: Stage) -> None:
    with pytest.raises(
        BadOutput, match=r"ended without an answer at \$\.text; it wrote last: \{\"texts\": 1\}"
    ) as caught:
        await call(stage.python("print('{\"texts\": 1}')", **JSON))
    assert caught.value.paid is Paid.UNKNOWN


@pytest.mark.parametrize("answer", ["", "  \n", "\x1b[0m"])
async def test_json_with_an_empty_answer_and_an_exit_code_is_no_answer(stage: Stage, answer: str) -> None:
    said = json.dumps({"result": answer, "cost": 0.07})
    program = f"import sys; print({said!r}); sys.stderr.write('no credit'); sys.exit(4)"
    with pytest.raises(BadExit, match=r"exited with code 4 without an answer: no credit$"):
        await call(stage.python(program, output="json", answer="$.result"))


async def test_json_after_which_it_exits_with_a_code_counts(stage: Stage) -> None:
    reply = await call(stage.python('print(\'{"text": "yes"}\'); raise SystemExit(4)', **JSON))
    assert reply.trace is not None
    assert (reply.text, reply.trace.note) == ("yes", "it exited with code 4 after its answer")


async def test_json_that_tells_of_a_failure(stage: Stage) -> None:
    said = json.dumps({"text": "half", "error": {"message": "quota"}, "cost": [0.1, 0.2]})
    agent = stage.python(f"print({said!r}); raise SystemExit(1)", **JSON, error="$.error.message", cost_usd="$.cost.*")
    with pytest.raises(AgentFailed, match="reports that it failed: quota") as caught:
        await call(agent)
    assert (caught.value.cost, caught.value.paid) == (0, Paid.UNKNOWN)  # less than was reserved, so not believed


async def test_hostile_json_takes_bounded_work(stage: Stage) -> None:
    agent = stage.python("import sys; sys.stderr.write('why'); print('{\"a\":' * 1_000_000)", **JSON)
    with pytest.raises(BadOutput, match="agent 'one': there is too much broken JSON") as caught:
        await call(agent)
    assert (caught.value.log, caught.value.paid) == ("why", Paid.UNKNOWN)


# JSON lines


async def test_a_line_that_is_not_ended_is_read_at_the_exit(stage: Stage) -> None:
    reply = await call(stage.python('print(\'{"text": "yes", "end": 1}\', end=\'\')', **LINES))
    assert reply.text == "yes"


async def test_characters_and_lines_may_be_cut_anywhere(stage: Stage) -> None:
    program = """
import os
for byte in '{"part": "Grü"}\\n{"part": "ße 🎉"}\\n{"text": "Grüße 🎉", "end": true}\\n'.encode():
    os.write(1, bytes([byte]))
    os.sched_yield()
"""
    deltas: list[str] = []
    reply = await stage.python(program, **LINES).call(ask("hello"), PATIENT, deltas.append)
    assert (reply.text, "".join(deltas)) == ("Grüße 🎉", "Grüße 🎉")


async def test_the_last_answer_counts_where_nothing_says_which_line_is_last(stage: Stage) -> None:
    program = 'print(\'{"text": "one"}\'); print(\'{"text": "two"}\'); print(\'{"text": null}\')'
    assert (await call(stage.python(program, output="jsonl", answer="$.text"))).text == "two"


async def test_an_answer_without_the_last_line_is_none(stage: Stage) -> None:
    with pytest.raises(BadOutput, match="ended without an answer"):
        await call(stage.python('print(\'{"text": "one"}\')', **LINES))
    with pytest.raises(BadExit, match="exited with code 5 without an answer"):
        await call(stage.python('print(\'{"text": "one"}\'); raise SystemExit(5)', **LINES))


async def test_a_last_line_without_an_answer_is_none(stage: Stage) -> None:
    with pytest.raises(BadOutput, match=r"without an answer at \$\.text; it wrote last: \{\"end\": 1\}"):
        await call(stage.python("print('{\"end\": 1}')", **LINES))


async def test_what_comes_after_the_last_line_does_not_count(stage: Stage) -> None:
    program = 'print(\'{"text": "yes", "end": 1}\\n{"text": "no", "part": "no"}\\n\'); raise SystemExit(6)'
    deltas: list[str] = []
    reply = await stage.python(program, **LINES).call(ask("hello"), PATIENT, deltas.append)
    assert (reply.text, deltas) == ("yes", ["yes"])
    assert reply.trace is not None
    assert reply.trace.note == "it exited with code 6 after its answer"


async def test_an_output_that_is_closed_without_an_answer_ends_the_call(stage: Stage) -> None:
    with pytest.raises(BadExit, match="closed its output without an answer and did not exit") as caught:
        await call(stage.playing([{"close_stdout": True}, {"hang": True}]))
    assert caught.value.paid is Paid.UNKNOWN


async def test_an_output_that_is_closed_after_the_answer_is_enough(stage: Stage) -> None:
    program = 'import os, time; print(\'{"text": "yes"}\', flush=True); os.close(1); time.sleep(600)'
    reply = await call(stage.python(program, output="jsonl", answer="$.text"))
    assert reply.trace is not None
    assert (reply.text, reply.trace.note) == ("yes", "it did not exit after its answer")


async def test_a_line_of_megabytes_is_read(stage: Stage) -> None:
    program = "print('{\"text\": \"' + 'ü' * 3_000_000 + '\", \"end\": 1}')"
    assert (await call(stage.python(program, **LINES))).text == "ü" * 3_000_000


async def test_a_line_without_an_end_is_given_up(stage: Stage) -> None:
    program = "import os\nwhile True: os.write(1, b'x' * 1_000_000)"
    with pytest.raises(BadOutput, match="wrote more than 32 MB"):
        await call(stage.python(program, **LINES))


async def test_of_megabytes_that_tools_are_given_little_is_kept(stage: Stage) -> None:
    program = """
import json
for number in range(10):
    print(json.dumps({"tool": "Write", "id": number, "with": {"content": "x" * 1_000_000, "rows": [number] * 300_000}}))
print('{"text": "yes", "end": 1}')
"""
    reply = await call(stage.python(program, **LINES, **TOOLS))
    assert len(reply.tool_calls) == 10
    assert sum(len(json.dumps(dict(each.arguments))) for each in reply.tool_calls) < 10 * 3_000


async def test_one_that_uses_tools_without_end_is_stopped(stage: Stage) -> None:
    program = """
number = 0
while True:
    number += 1
    print(f'{{"tool": "Read", "id": {number}}}')
"""
    with pytest.raises(BadOutput, match=r"^agent 'one': used more than 10,000 tools$") as caught:
        await call(stage.python(program, **LINES, **TOOLS))
    assert caught.value.paid is Paid.UNKNOWN
    assert stage.alive() == []


async def test_a_line_too_deep_to_be_searched_is_told(stage: Stage) -> None:
    program = "print('{\"deep\": ' * 500 + '1' + '}' * 500)"
    with pytest.raises(BadOutput, match=r"agent 'one': the answer cannot be searched by the JSONPath \$\.\.x"):
        await call(stage.python(program, output="jsonl", answer="$..x"))


async def test_many_lines_leave_others_their_turn(stage: Stage) -> None:
    program = 'print(\'{"part": "x"}\\n\' * 20_000 + \'{"text": "yes", "end": 1}\')'
    deltas: list[str] = []
    reply = await stage.python(program, **LINES).call(ask("hello"), PATIENT, deltas.append)
    assert (reply.text, len(deltas)) == ("yes", 20_000)


async def test_what_is_said_is_handed_over_before_the_next_is_said(stage: Stage) -> None:
    program = """
import pathlib, time
for word in ("one", "two", "three"):
    print('{"part": "%s"}' % word, flush=True)
    while not pathlib.Path(word).exists():
        time.sleep(0.01)
print('{"text": "yes", "end": 1}')
"""
    agent = stage.python(program, **LINES, working_dir=str(stage.folder))
    reply = await agent.call(ask("hello"), PATIENT, lambda word: (stage.folder / word).touch())
    assert reply.text == "yes"


async def test_silence_on_both_outputs_stalls_but_a_word_on_one_does_not(stage: Stage) -> None:
    # The log speaks up three times, each after a third of the silence that is allowed.
    program = """
import sys, time
for _ in range(3):
    time.sleep(2.2)
    print('working', file=sys.stderr, flush=True)
print('{"text": "yes", "end": 1}')
"""
    reply = await call(stage.python(program, **LINES), timeouts=Timeouts(call=120.0, idle=6.0))
    assert reply.text == "yes"


async def test_a_stall_after_the_answer_is_a_stall_where_nothing_says_which_line_is_last(stage: Stage) -> None:
    program = 'import time; print(\'{"text": "yes"}\', flush=True); time.sleep(600)'
    with pytest.raises(Stalled):
        await call(stage.python(program, output="jsonl", answer="$.text"), timeouts=Timeouts(call=30.0, idle=0.5))


# The programs of others, as they are documented

CODEX: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "019e49d4-05e3"},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 2/5 (timeout waiting for child process to exit)"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "Let me see."}},
    {
        "type": "item.started",
        "item": {
            "id": "item_1",
            "type": "command_execution",
            "command": "bash -lc ls",
            "aggregated_output": "",
            "exit_code": None,
            "status": "in_progress",
        },
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_1",
            "type": "command_execution",
            "command": "bash -lc ls",
            "aggregated_output": "README.md\n",
            "exit_code": 1,
            "status": "failed",
        },
    },
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "First."}},
    {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "There is a README."}},
    {"type": "turn.completed", "usage": {"input_tokens": 12632, "cached_input_tokens": 3456, "output_tokens": 81}},
]
FAILED = [*CODEX[:2], {"type": "turn.failed", "error": {"message": "usage limit reached"}}]


def codex(stage: Stage, lines: list[dict[str, Any]]) -> Any:
    (stage.folder / "lines").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    variables = {"HOME": str(stage.folder), **stage.variables}
    section = replace(declared("codex"), command=("bash", "-c", 'cat "$0"', "lines"))
    return Stage(stage.processes, stage.remembered, stage.folder, variables).agent(section)


async def test_the_declaration_of_codex_reads_what_it_writes(stage: Stage) -> None:
    reply = await call(codex(stage, CODEX))
    assert (reply.text, reply.id, reply.usage) == (
        "There is a README.",
        "019e49d4-05e3",
        Usage(input=12632, output=81),
    )
    assert reply.tool_calls == (
        ToolCall(
            id="item_1",
            name="command_execution",
            arguments={"input": "bash -lc ls"},
            result="README.md\n",
            failed=True,
        ),
    )
    with pytest.raises(AgentFailed, match="reports that it failed: usage limit reached"):
        await call(codex(stage, FAILED))


async def test_the_declaration_of_gemini_reads_what_it_writes(stage: Stage) -> None:
    tokens = {"prompt": 100, "candidates": 7, "total": 107, "cached": 0, "thoughts": 0, "tool": 0}
    said = {
        "session_id": "4df9d202",
        "response": "Paris.",
        "stats": {"models": {"pro": {"tokens": tokens}, "flash": {"tokens": tokens}}},
    }
    (stage.folder / "said").write_text("Loaded cached credentials.\n" + json.dumps(said, indent=2) + "\n")
    section = replace(declared("gemini"), command=("bash", "-c", 'cat "$0"', "said"), pass_env=())
    reply = await call(stage.agent(section))
    assert (reply.text, reply.id, reply.usage) == ("Paris.", "4df9d202", Usage(input=200, output=14))
