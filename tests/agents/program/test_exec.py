"""The exec protocol through real processes: one JSON in, one JSON found in whatever comes out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program.answer import END, START
from muster.domain.agent import PHASE_SECONDS, Timeouts
from muster.domain.call import Quality, Request, Stop, ask
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadExit, BadOutput, InvalidRequest, NotStarted, Paid, TimedOut
from muster.domain.money import Lane, Microdollars
from tests.agents.program.stage import (
    EVALUATE,
    PATIENT,
    PROPOSAL,
    PROPOSE,
    bash,
    context,
    program,
    python,
    request_for,
    says,
    spelled,
)

HEAR = 'heard=$(cat); printf "%s" "$heard" >&2; '
EVALUATIONS = {"evaluations": [{"target_id": "A", "score": 0.85, "justification": "good"}]}


async def proposal(processes: ProcessRegistry, output: str) -> Json:
    return (await bash(processes, says(output)).call(PROPOSE, PATIENT)).data


async def failure(processes: ProcessRegistry, script: str, request: Request = PROPOSE) -> AgentFailed:
    with pytest.raises(AgentFailed) as caught:
        await bash(processes, script).call(request, PATIENT)
    return caught.value


async def heard(processes: ProcessRegistry, request: Request, timeouts: Timeouts = PATIENT) -> dict[str, Any]:
    """Give the envelope that a program got, as it wrote it to its log."""
    reply = await bash(processes, HEAR + says(spelled({**PROPOSAL, **EVALUATIONS}))).call(request, timeouts)
    assert reply.trace is not None
    found = json.loads(reply.trace.log)
    assert isinstance(found, dict)
    return found


async def test_a_proposal_is_given_as_text_and_as_data(processes: ProcessRegistry) -> None:
    reply = await bash(processes, says(spelled(PROPOSAL))).call(PROPOSE, PATIENT)
    assert (reply.text, reply.data, reply.stop) == ("solution", PROPOSAL, Stop.END)
    assert (reply.cost, reply.lane, reply.model, reply.quality) == (0, Lane.BILLED, "critic", Quality.GOOD)


async def test_evaluations_are_given_as_data_and_as_canonical_text(processes: ProcessRegistry) -> None:
    reply = await bash(processes, says(json.dumps(EVALUATIONS, indent=2))).call(EVALUATE, PATIENT)
    assert reply.data == EVALUATIONS
    assert reply.text == '{"evaluations":[{"justification":"good","score":0.85,"target_id":"A"}]}'


async def test_a_proposal_between_markers_is_found_among_log_lines(processes: ProcessRegistry) -> None:
    output = f"Loading weights...\nWARNING: deprecated API\n{START}\n{spelled(PROPOSAL)}\n{END}\nCleanup done\n"
    assert await proposal(processes, output) == PROPOSAL


async def test_a_proposal_without_markers_is_found_after_warnings(processes: ProcessRegistry) -> None:
    assert await proposal(processes, f"DeprecationWarning: {{old}}\n{spelled(PROPOSAL)}\n") == PROPOSAL


@pytest.mark.parametrize("fence", ["```json\n", "```\n"])
async def test_a_fenced_proposal_is_found_with_and_without_markers(processes: ProcessRegistry, fence: str) -> None:
    fenced = f"{fence}{spelled(PROPOSAL)}\n```"
    assert await proposal(processes, f"{fenced}\n  ") == PROPOSAL
    assert await proposal(processes, f"noise\n{START}\n{fenced}\n{END}\nmore noise") == PROPOSAL


async def test_braces_inside_of_a_proposal_do_not_break_it(processes: ProcessRegistry) -> None:
    odd = {"thought_process": "}{ {", "content": f'use {{ and "}}" and {END}'}
    assert await proposal(processes, f"log {{1}}\n{START}\n{spelled(odd)}\n{END}\nlog }}\n") == odd


async def test_a_program_gets_the_phase_and_the_context_and_the_end_of_its_input(
    processes: ProcessRegistry,
) -> None:
    asked = context("evaluate", "A", "B")
    envelope = await heard(processes, request_for(asked), Timeouts(call=60.0, idle=60.0))
    assert envelope == {
        "phase": "evaluate",
        "context": {**asked, "agent_id": "critic", PHASE_SECONDS: 60.0},
    }


async def test_the_volatile_part_of_a_request_is_in_the_context(processes: ProcessRegistry) -> None:
    request = request_for(context(), session_id="s", **{PHASE_SECONDS: 7.5})
    found = (await heard(processes, request))["context"]
    assert (found["session_id"], found[PHASE_SECONDS], found["task_description"]) == ("s", 7.5, "Solve the problem")


async def test_a_schema_beside_a_context_is_for_agents_of_other_kinds(processes: ProcessRegistry) -> None:
    schema = {"type": "object", "required": ["text"]}
    agent = bash(processes, says(spelled(PROPOSAL)))
    assert (await agent.call(replace(PROPOSE, schema=schema), PATIENT)).data == PROPOSAL
    with pytest.raises(BadOutput, match="holds no JSON"):
        await agent.call(replace(PROPOSE, schema=schema, context=None), PATIENT)


async def test_a_request_without_a_context_gets_the_smallest_one(processes: ProcessRegistry) -> None:
    envelope = await heard(processes, ask("Why {this}?", system="Be brief."))
    assert envelope["phase"] == "propose"
    assert envelope["context"] == {
        "task_description": "Why {this}?",
        "round_number": 1,
        "total_rounds": 1,
        "phase": "propose",
        "candidates": [],
        "previous_critiques": [],
        "user_injections": [],
        "agent_id": "critic",
        "role_context": "Be brief.",
        PHASE_SECONDS: PATIENT.call,
    }


async def test_a_context_without_a_phase_asks_for_a_proposal(processes: ProcessRegistry) -> None:
    envelope = await heard(processes, request_for({"task_description": "x"}))
    assert (envelope["phase"], envelope["context"]["phase"]) == ("propose", "propose")


@pytest.mark.parametrize("phase", ["vote", "", None, ["propose"]])
async def test_another_phase_is_refused_before_anything_starts(processes: ProcessRegistry, phase: Json) -> None:
    with pytest.raises(InvalidRequest, match="phase") as caught:
        await bash(processes, "exit 1").call(request_for({"phase": phase}), PATIENT)
    assert repr(phase) in caught.value.message


@pytest.mark.parametrize("seconds", [-1, -0.5, "30", True, float("nan"), float("inf"), [30]])
async def test_a_time_left_that_is_none_is_refused_before_anything_starts(
    processes: ProcessRegistry, seconds: Json
) -> None:
    with pytest.raises(InvalidRequest, match="phase_budget_remaining_secs") as caught:
        await bash(processes, "exit 1").call(request_for({"phase_budget_remaining_secs": seconds}), PATIENT)
    assert repr(seconds) in caught.value.message


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
async def test_a_context_that_is_no_json_is_refused_before_anything_starts(
    processes: ProcessRegistry, value: Json
) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        await bash(processes, "exit 1").call(request_for({"odd": value}), PATIENT)


async def test_text_from_a_provider_becomes_a_proposal(processes: ProcessRegistry) -> None:
    envelope = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "It's 42."}
    expected = {"thought_process": "(generated by exec provider)", "content": "It's 42."}
    assert await proposal(processes, spelled(envelope)) == expected


async def test_a_proposal_written_into_the_text_of_a_provider_is_taken(processes: ProcessRegistry) -> None:
    assert await proposal(processes, spelled({"type": "result", "result": spelled(PROPOSAL)})) == PROPOSAL


async def test_a_proposal_as_the_result_of_a_provider_is_taken(processes: ProcessRegistry) -> None:
    assert await proposal(processes, spelled({"type": "result", "result": PROPOSAL})) == PROPOSAL


async def test_text_from_a_provider_becomes_evaluations_that_never_count(processes: ProcessRegistry) -> None:
    output = spelled({"type": "result", "subtype": "success", "result": "Both proposals are good."})
    reply = await bash(processes, says(output)).call(EVALUATE, PATIENT)
    said = {"score": 0.5, "justification": "Both proposals are good.", "coerced": True}
    assert reply.data == {"evaluations": [{"target_id": name, **said} for name in ("A", "B")], "coerced": True}


async def test_what_a_provider_says_of_cost_and_session_is_kept(processes: ProcessRegistry) -> None:
    usage = {"input_tokens": 11, "output_tokens": 7}
    envelope = {"type": "result", "result": "x", "total_cost_usd": 0.01, "usage": usage, "session_id": "abc"}
    reply = await bash(processes, says(spelled({**envelope, "num_turns": 3}))).call(PROPOSE, PATIENT)
    assert (reply.cost, reply.lane, reply.usage.input, reply.usage.output) == (10_000, Lane.BILLED, 11, 7)
    assert reply.trace is not None
    assert (reply.trace.session, reply.trace.turns) == ("abc", 3)


async def test_an_error_of_a_provider_is_shown_in_its_own_words_with_its_cost(
    processes: ProcessRegistry,
) -> None:
    output = {"type": "result", "is_error": True, "result": "Error: tool failed", "total_cost_usd": 0.02}
    error = await failure(processes, says(spelled(output)))
    assert isinstance(error, BadOutput)
    assert "agent 'critic'" in error.message
    assert "Error: tool failed" in error.message
    assert (error.paid, error.cost) == (Paid.YES, 20_000)


async def test_bare_text_is_no_proposal_and_is_shown(processes: ProcessRegistry) -> None:
    error = await failure(processes, says("not json at all " + "x" * 500))
    assert isinstance(error, BadOutput)
    assert "the output is not a valid proposal" in error.message
    assert "not json at all " + "x" * 184 in error.message
    assert "x" * 185 not in error.message


async def test_bare_text_is_no_evaluation(processes: ProcessRegistry) -> None:
    error = await failure(processes, says("good work"), EVALUATE)
    assert "the output is not a valid list of evaluations" in error.message
    assert "good work" in error.message


async def test_a_proposal_is_no_evaluation(processes: ProcessRegistry) -> None:
    error = await failure(processes, says(spelled(PROPOSAL)), EVALUATE)
    assert "the output is not a valid list of evaluations" in error.message


async def test_too_much_broken_json_is_a_bad_output(processes: ProcessRegistry) -> None:
    error = await failure(processes, "cat >/dev/null; yes '{\"a\":' | head -n 200000")
    assert isinstance(error, BadOutput)
    assert "the output is not a valid proposal: there is too much broken JSON" in error.message


async def test_an_exit_with_an_error_shows_the_code_and_the_log(processes: ProcessRegistry) -> None:
    error = await failure(processes, "echo 'something broke' >&2; exit 1")
    assert isinstance(error, BadExit)
    assert "exited with code 1: something broke" in error.message
    assert error.log == "something broke\n"
    assert error.paid is Paid.NO


async def test_a_log_is_cut_between_characters_in_a_message_and_kept_whole(processes: ProcessRegistry) -> None:
    error = await failure(processes, "printf 'é%.0s' $(seq 1 600) >&2; exit 1")
    assert "é" * 500 in error.message
    assert "é" * 501 not in error.message
    assert error.log == "é" * 600


async def test_an_exit_with_an_error_and_no_log_says_so(processes: ProcessRegistry) -> None:
    assert "it wrote nothing to standard error" in (await failure(processes, "exit 4")).message
    assert (await failure(processes, "echo out; exit 4")).message.endswith("it wrote nothing to standard error")


async def test_an_exit_with_an_error_shows_and_books_what_its_provider_said(processes: ProcessRegistry) -> None:
    output = {"type": "result", "is_error": True, "result": "No credit left", "total_cost_usd": 0.5}
    error = await failure(processes, says(spelled(output)) + "; exit 1")
    assert isinstance(error, BadExit)
    assert "exited with code 1: No credit left" in error.message
    assert (error.paid, error.cost) == (Paid.YES, 500_000)


async def test_a_program_that_is_killed_says_by_which_signal(processes: ProcessRegistry) -> None:
    error = await failure(processes, "cat >/dev/null; kill -KILL $$")
    assert isinstance(error, BadExit)
    assert "was killed by SIGKILL" in error.message


async def test_closing_the_input_early_shows_the_exit_and_not_the_pipe(processes: ProcessRegistry) -> None:
    error = await failure(processes, "exec 0<&-; echo 'pipe closed' >&2; exit 2")
    assert "exited with code 2: pipe closed" in error.message


async def test_a_large_input_that_is_not_read_shows_the_exit_and_not_the_pipe(
    processes: ProcessRegistry,
) -> None:
    request = request_for({**context(), "task_description": "x" * 1_000_000})
    error = await failure(processes, "exec 0<&-; exit 2", request)
    assert isinstance(error, BadExit)
    assert "exited with code 2" in error.message


async def test_a_program_that_takes_too_long_is_stopped(processes: ProcessRegistry) -> None:
    with pytest.raises(TimedOut, match="timed out after 1s"):
        await program(processes, "sleep", "999").call(PROPOSE, Timeouts(call=1.0, idle=5.0))


async def test_a_program_that_is_not_there_cannot_be_started(processes: ProcessRegistry) -> None:
    with pytest.raises(NotStarted, match="failed to spawn '/nonexistent/binary'"):
        await program(processes, "/nonexistent/binary").call(PROPOSE, PATIENT)


async def test_an_empty_command_cannot_be_started(processes: ProcessRegistry) -> None:
    with pytest.raises(NotStarted, match="command is empty"):
        await program(processes).call(PROPOSE, PATIENT)


@pytest.mark.parametrize("script", ["cat >/dev/null", "cat >/dev/null; echo; echo '  '"])
async def test_a_program_that_writes_nothing_has_not_answered(processes: ProcessRegistry, script: str) -> None:
    error = await failure(processes, script + "; echo busy >&2")
    assert isinstance(error, BadOutput)
    assert "no output" in error.message
    assert error.log == "busy\n"


async def test_variables_are_passed_to_the_program(processes: ProcessRegistry) -> None:
    script = """cat >/dev/null; echo "{\\"thought_process\\":\\"$MY_VAR\\",\\"content\\":\\"ok\\"}" """
    reply = await bash(processes, script, env={"MY_VAR": "hello_from_env"}).call(PROPOSE, PATIENT)
    assert reply.data == {"thought_process": "hello_from_env", "content": "ok"}


async def test_what_a_program_writes_to_its_log_is_kept_with_its_answer(processes: ProcessRegistry) -> None:
    reply = await bash(processes, f"echo 'a warning' >&2; {says(spelled(PROPOSAL))}").call(PROPOSE, PATIENT)
    assert reply.trace is not None
    assert reply.trace.log == "a warning\n"


PROMPTS = [
    '{"a": {prompt}} {{x}} {0} %s $HOME `id` \\n "quoted" \'single\'',
    "{",
    "}\n\n{",
    "é😀\u2028\x00\x7f",
    "\ud83d half",
]


@pytest.mark.parametrize("prompt", PROMPTS)
async def test_a_prompt_arrives_unchanged(processes: ProcessRegistry, prompt: str) -> None:
    script = """
import json, sys
asked = json.load(sys.stdin)["context"]["task_description"]
print(json.dumps({"thought_process": "", "content": asked}))
"""
    assert (await python(processes, script).call(ask(prompt), PATIENT)).text == prompt


BUDGET = Microdollars(50_000)


async def test_what_may_have_cost_something_is_booked_in_full_as_uncertain(processes: ProcessRegistry) -> None:
    agent = bash(processes, says(spelled(PROPOSAL)), most=BUDGET)
    reply = await agent.call(PROPOSE, PATIENT)
    assert agent.quote(PROPOSE).most == BUDGET
    assert (reply.cost, reply.lane) == (BUDGET, Lane.UNCERTAIN)


async def test_what_an_answer_says_that_it_cost_is_booked(processes: ProcessRegistry) -> None:
    output = spelled({**PROPOSAL, "cost_usd": 0.001})
    reply = await bash(processes, says(output), most=BUDGET).call(PROPOSE, PATIENT)
    assert (reply.cost, reply.lane) == (1_000, Lane.BILLED)


@pytest.mark.parametrize("script", ["exit 1", "cat >/dev/null; echo no", "sleep 999"])
async def test_a_failed_call_that_may_have_cost_something_says_so(processes: ProcessRegistry, script: str) -> None:
    with pytest.raises(AgentFailed) as caught:
        await bash(processes, script, most=BUDGET).call(PROPOSE, Timeouts(call=0.5, idle=5.0))
    assert caught.value.paid is Paid.UNKNOWN


async def test_a_program_that_did_not_start_has_cost_nothing(processes: ProcessRegistry) -> None:
    with pytest.raises(NotStarted) as caught:
        await program(processes, most=BUDGET).call(PROPOSE, PATIENT)
    assert caught.value.paid is Paid.NO
