"""However a call ends, its processes end with it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from muster.agents.processes import system
from muster.agents.processes.registry import Reaper
from muster.agents.processes.system import is_gone, this_process
from muster.domain.agent import Timeouts
from muster.domain.call import Request, ask
from muster.domain.errors import (
    AgentFailed,
    AuthRefused,
    BadExit,
    BadOutput,
    NotStarted,
    Overloaded,
    Paid,
    PermissionAsked,
    Stalled,
    TimedOut,
    WireError,
)
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from tests.claude.conftest import House

PATIENT = Timeouts()
ROOT = Path(__file__).parents[2]
HANG = Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.TIMEOUT)),))

# A program that greets the SDK as Claude Code does and then does what the test says with the question.
PLAYER = """
import json, os, sys, time
def say(**frame):
    print(json.dumps(frame), flush=True)
def result(**more):
    say(**{"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1,
           "num_turns": 1, "session_id": "s", "result": "Done.", "total_cost_usd": 0.01, **more})
print("[not a frame]", flush=True)
greeting = json.loads(sys.stdin.readline())
say(type="control_response", response={"subtype": "success", "request_id": greeting["request_id"], "response": {}})
question = json.loads(sys.stdin.readline())
"""


def player(house: House, play: str) -> Path:
    path = house.folder / "player"
    path.write_text(f"#!{sys.executable}\n{PLAYER}{play}\n")
    path.chmod(0o700)
    return path


async def sleepers(house: House) -> set[int]:
    """Wait until Claude Code has started both commands, the one that stays and the one that leaves its session."""
    while len(found := {pid for pid in house.alive() if _name(pid) == "sleep"}) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # the system tells nobody that a process of another has started
    return found


async def nobody(house: House) -> None:
    """Wait until no process of the house is alive."""
    while house.alive():  # noqa: ASYNC110
        await asyncio.sleep(0.005)  # nor that it has ended


async def test_a_canceled_call_ends_with_all_that_it_started(house: House) -> None:
    call = asyncio.ensure_future(house.agent(allowed_tools=("Bash",)).call(ask("please linger"), PATIENT))
    await asyncio.wait_for(sleepers(house), 30)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    await house.processes.close()  # kills what has left its group, too
    await asyncio.wait_for(nobody(house), 5)


async def test_a_call_that_is_canceled_while_the_model_thinks_ends_at_once(house: House) -> None:
    house.server.play(HANG)
    call = asyncio.ensure_future(house.agent().call(ask("Hello"), PATIENT))
    await house.script.reached.wait()
    began = asyncio.get_running_loop().time()
    call.cancel()
    await asyncio.wait([call])
    assert asyncio.get_running_loop().time() - began < 3
    assert house.alive() == []


async def test_a_silent_one_is_stopped_and_its_tool_is_named(house: House) -> None:
    agent = house.agent(allowed_tools=("Bash",))
    with pytest.raises(Stalled, match="at the tool Bash") as caught:
        await agent.call(ask("please sleep"), Timeouts(idle=8.0))
    assert (caught.value.tool, caught.value.paid) == ("Bash", Paid.UNKNOWN)
    assert house.alive() == []


async def test_one_whose_time_is_over_is_stopped(house: House) -> None:
    house.server.play(HANG)
    with pytest.raises(TimedOut) as caught:
        await house.agent().call(ask("Hello"), Timeouts(call=8.0))
    assert (caught.value.tool, caught.value.paid) == (None, Paid.UNKNOWN)
    assert house.alive() == []


async def test_a_session_that_nobody_knows_fails_at_once_and_costs_nothing(house: House) -> None:
    request = Request(messages=ask("Hello").messages, volatile={"session": "11111111-1111-4111-8111-111111111111"})
    with pytest.raises(AgentFailed, match="error_during_execution") as caught:
        await asyncio.wait_for(house.agent().call(request, PATIENT), 20)
    assert "No conversation found" in caught.value.log
    assert (caught.value.cost, house.server.audit.requests) == (0, 0)


async def test_a_wrong_key_stops_the_run_without_further_tries(house: House) -> None:
    house.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.UNAUTHORIZED), times=None),)))
    with pytest.raises(AuthRefused, match="401") as caught:
        await asyncio.wait_for(house.agent().call(ask("Hello"), PATIENT), 20)
    assert "ANTHROPIC_API_KEY" in caught.value.suggestions[0]
    assert house.server.audit.requests == 1


REFUSED = 'say(type="system", subtype="api_retry", error_status=401)\ntime.sleep(60)'
SPOKEN = 'say(type="assistant", message={"model": "m", "content": [{"type": "text", "text": "I see."}]})\n'
FULL = 'result(is_error=True, subtype="success", api_error_status=529, total_cost_usd=None)'


@pytest.mark.parametrize(("before", "paid"), [("", Paid.NO), (SPOKEN, Paid.UNKNOWN)])
async def test_a_key_that_is_refused_in_the_middle_may_have_cost_money(house: House, before: str, paid: Paid) -> None:
    with pytest.raises(AuthRefused, match="401") as caught:
        await house.agent(cli_path=player(house, before + REFUSED)).call(ask("Hello"), PATIENT)
    assert caught.value.paid is paid
    assert house.alive() == []


@pytest.mark.parametrize(("before", "paid"), [("", Paid.NO), (SPOKEN, Paid.UNKNOWN)])
async def test_an_api_that_is_full_in_the_middle_may_have_cost_money(house: House, before: str, paid: Paid) -> None:
    with pytest.raises(Overloaded) as caught:
        await house.agent(cli_path=player(house, before + FULL)).call(ask("Hello"), PATIENT)
    assert caught.value.paid is paid


async def test_where_nothing_is_reserved_nothing_is_left_open(house: House) -> None:
    agent = house.agent(cli_path=player(house, SPOKEN + FULL), subscription=True, budget_usd=0)
    with pytest.raises(Overloaded) as caught:
        await agent.call(ask("Hello"), PATIENT)
    assert caught.value.paid is Paid.NO


async def test_a_real_session_whose_key_is_refused_after_a_tool_may_have_cost_money(house: House) -> None:
    house.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.UNAUTHORIZED), nth=2, times=None),)))
    with pytest.raises(AuthRefused, match="401") as caught:
        await house.agent(allowed_tools=("Bash",)).call(ask("please echo"), PATIENT)
    assert (caught.value.paid, house.server.audit.requests) == (Paid.UNKNOWN, 2)


async def test_one_that_uses_tools_without_end_is_stopped(house: House) -> None:
    play = """
number = 0
while True:
    number += 1
    block = {"type": "tool_use", "id": str(number), "name": "Read", "input": {"path": "x"}}
    print(json.dumps({"type": "assistant", "message": {"model": "m", "content": [block]}}))"""
    with pytest.raises(BadOutput, match=r"^agent 'coder': used more than 10,000 tools$") as caught:
        await house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT)
    assert caught.value.paid is Paid.UNKNOWN
    assert house.alive() == []


async def test_an_api_that_stays_full_is_worth_another_try_later(house: House) -> None:
    house.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.OVERLOADED), times=None),)))
    with pytest.raises(Overloaded) as caught:
        await house.agent(env={"CLAUDE_CODE_MAX_RETRIES": "0"}).call(ask("Hello"), PATIENT)
    assert (caught.value.status, caught.value.paid) == (529, Paid.NO)


async def test_one_that_does_not_exit_after_its_answer_is_stopped_and_that_is_noted(house: House) -> None:
    agent = house.agent(cli_path=player(house, "result()\ntime.sleep(60)"))
    reply = await agent.call(ask("Hello"), PATIENT)
    assert (reply.text, reply.cost) == ("Done.", 10_000)
    assert reply.trace is not None
    assert "was stopped" in reply.trace.note
    assert house.alive() == []


async def test_what_it_writes_to_standard_error_is_kept_without_the_key(house: House) -> None:
    play = 'print("a warning about", os.environ["ANTHROPIC_API_KEY"], file=sys.stderr, flush=True)\nresult()'
    reply = await house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT)
    assert reply.trace is not None
    assert reply.trace.log == "a warning about [key]\n"


async def test_one_that_exits_before_it_answers_failed_and_may_have_cost_money(house: House) -> None:
    play = 'print("out of luck", os.environ["ANTHROPIC_API_KEY"], file=sys.stderr)\nsys.exit(7)'
    with pytest.raises(BadExit, match=r"exited with code 7 before it answered: out of luck \[key\]") as caught:
        await house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT)
    assert (caught.value.log, caught.value.paid) == ("out of luck [key]\n", Paid.UNKNOWN)


async def test_one_that_is_killed_says_by_what(house: House) -> None:
    with pytest.raises(BadExit, match="was killed by SIGKILL"):
        await house.agent(cli_path=player(house, "os.kill(os.getpid(), 9)")).call(ask("Hello"), PATIENT)


async def test_one_that_never_greets_cost_nothing(house: House) -> None:
    path = house.folder / "mute"
    path.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 2\n")
    path.chmod(0o700)
    with pytest.raises(BadExit, match="exited with code 2 before it answered: no such option") as caught:
        await asyncio.wait_for(house.agent(cli_path=path).call(ask("Hello"), PATIENT), 20)
    assert caught.value.paid is Paid.NO


async def test_a_result_that_comes_before_an_error_wins(house: House) -> None:
    play = 'result(is_error=True, subtype="error_of_a_new_kind", errors=["so it is"])\nsys.exit(1)'
    with pytest.raises(AgentFailed, match="error_of_a_new_kind: so it is") as caught:
        await house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT)
    assert (caught.value.paid, caught.value.cost) == (Paid.UNKNOWN, 0)


async def test_a_real_session_that_gets_garbage_from_the_api_may_have_cost_money(house: House) -> None:
    house.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.GARBAGE), times=None),)))
    with pytest.raises(WireError) as caught:
        await house.agent().call(ask("Hello"), PATIENT)
    assert house.server.audit.calls > 0
    assert caught.value.paid is Paid.UNKNOWN


async def test_a_result_that_cannot_be_read_is_bad_output(house: House) -> None:
    with pytest.raises(BadOutput, match="not of the shape") as caught:
        await house.agent(cli_path=player(house, "result(num_turns=[])")).call(ask("Hello"), PATIENT)
    assert caught.value.paid is Paid.UNKNOWN


async def test_a_message_that_only_the_sdk_cannot_read_is_bad_output(house: House) -> None:
    play = 'say(type="assistant", message={"content": "no list"})\ntime.sleep(60)'
    with pytest.raises(BadOutput, match="the SDK cannot parse"):
        await house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT)
    assert house.alive() == []


async def test_one_that_is_denied_and_says_nothing_more_is_stopped_soon(house: House) -> None:
    play = """
say(type="control_request", request_id="r", request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}})
answer = json.loads(sys.stdin.readline())["response"]["response"]
print(answer["behavior"], answer["interrupt"], file=sys.stderr, flush=True)
time.sleep(60)"""
    with pytest.raises(PermissionAsked) as caught:
        await asyncio.wait_for(house.agent(cli_path=player(house, play)).call(ask("Hello"), PATIENT), 20)
    assert (caught.value.tool, caught.value.paid, caught.value.log) == ("Bash", Paid.UNKNOWN, "deny True\n")


async def test_a_program_that_is_not_there_is_not_started(house: House) -> None:
    with pytest.raises(NotStarted, match="nowhere") as caught:
        await house.agent(cli_path=Path("nowhere/claude")).call(ask("Hello"), PATIENT)
    assert caught.value.paid is Paid.NO


async def test_what_a_killed_driver_left_is_found_and_ended_at_the_next_start(house: House) -> None:
    told = {"folder": str(house.folder), "variables": house.variables, "prompt": "please linger"}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    driver = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.claude.driver", json.dumps(told), cwd=ROOT, env=environment
    )
    (away,) = {pid for pid in await asyncio.wait_for(sleepers(house), 30) if os.getsid(pid) == pid}
    driver.send_signal(signal.SIGKILL)
    await driver.wait()
    assert away in house.alive()  # nobody else ends it
    us = this_process()
    here = us.host
    reaped = await Reaper(house.registry, here, lambda gone: is_gone(gone, us)).reap()
    assert away in {process.pid for process in reaped}
    assert system.started(away) is None
    assert (house.alive(), await house.registry.all(here)) == ([], [])


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
