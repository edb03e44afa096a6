"""Nobody is there to give permissions: what is allowed is done, what is not ends the call."""

import os

import pytest

from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.domain.errors import Paid, PermissionAsked
from tests.claude.conftest import House

PATIENT = Timeouts()


async def test_a_tool_that_needs_permission_ends_the_call_and_is_named(house: House) -> None:
    with pytest.raises(PermissionAsked, match="to use Bash") as caught:
        await house.agent().call(ask("please touch"), PATIENT)
    assert (caught.value.tool, caught.value.paid) == ("Bash", Paid.YES)
    assert caught.value.cost > 0
    assert 'allowed_tools = ["Bash"]' in caught.value.suggestions[0]
    assert not (house.work / "made.txt").exists()
    assert house.alive() == []


async def test_a_write_needs_permission_too(house: House) -> None:
    with pytest.raises(PermissionAsked) as caught:
        await house.agent().call(ask("please write"), PATIENT)
    assert caught.value.tool == "Write"
    assert not (house.work / "written.txt").exists()


async def test_a_command_that_only_looks_needs_none(house: House) -> None:
    reply = await house.agent().call(ask("please echo"), PATIENT)
    assert [call.result for call in reply.tool_calls] == ["one two"]


async def test_an_allowed_tool_is_used(house: House) -> None:
    await house.agent(allowed_tools=("Bash(touch:*)",)).call(ask("please touch"), PATIENT)
    assert (house.work / "made.txt").exists()


async def test_edits_can_be_accepted_beforehand(house: House) -> None:
    await house.agent(permission_mode="acceptEdits").call(ask("please write"), PATIENT)
    assert (house.work / "written.txt").read_text() == "hello"


async def test_everything_can_be_allowed_even_to_root(house: House) -> None:
    reply = await house.agent(permission_mode="bypassPermissions").call(ask("please look around"), PATIENT)
    assert ("IS_SANDBOX=1" in (reply.tool_calls[0].result or "")) == (os.geteuid() == 0)


async def test_it_can_be_told_to_go_on_without(house: House) -> None:
    reply = await house.agent(permission_mode="dontAsk").call(ask("please touch"), PATIENT)
    assert reply.text == "The second turn."
    assert [call.failed for call in reply.tool_calls] == [True]
    assert not (house.work / "made.txt").exists()


async def test_a_tool_can_be_taken_away(house: House) -> None:
    agent = house.agent(permission_mode="bypassPermissions", disallowed_tools=("Bash",))
    reply = await agent.call(ask("please touch"), PATIENT)
    assert [call.failed for call in reply.tool_calls] == [True]
    assert not (house.work / "made.txt").exists()


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_it_has_no_tool_that_waits_for_a_person(house: House, mode: str) -> None:
    reply = await house.agent(permission_mode=mode).call(ask("please ask me"), PATIENT)
    (call,) = reply.tool_calls
    assert call.failed
    assert "No such tool" in (call.result or "")
    assert reply.text == "The second turn."
