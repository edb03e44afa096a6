"""Claude Code is told more while it works, and takes it in before its next turn."""

import asyncio
from dataclasses import replace

from muster.agents.claude_code.agent import ClaudeCodeAgent
from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.testing.agents import MemoryInbox
from tests.claude.conftest import House

PATIENT = Timeouts()


def agent(house: House) -> ClaudeCodeAgent:
    found = house.agent(allowed_tools=("Bash",))
    assert isinstance(found, ClaudeCodeAgent)
    return found


async def begun(house: House) -> None:
    async with asyncio.timeout(60):
        while not (house.work / "begun").exists():  # noqa: ASYNC110  # the system tells nobody
            await asyncio.sleep(0.02)


async def test_a_message_is_taken_in_before_the_next_turn(house: House) -> None:
    (house.work / "secret.txt").write_text("the content of the file")
    inbox = MemoryInbox()
    call = asyncio.ensure_future(agent(house).converse(ask("please wait"), PATIENT, inbox))
    await begun(house)
    inbox.put("Message from critic:\nlook at @secret.txt")
    await inbox.offered.wait()
    (house.work / "go").write_text("")
    reply = await call
    assert (reply.text, inbox.taken_in) == ("The second turn.", ["Message from critic:\nlook at @secret.txt"])
    assert (len(house.script.heard), house.alive()) == (2, [])
    assert reply.trace is not None
    # It stands after the last turn, which scripts are not shown; of a session that goes on it is a part.
    await agent(house).call(replace(ask("And?"), volatile={"session": reply.trace.session}), PATIENT)
    sent = "".join(message.text for message in house.script.heard[2])
    assert "look at @secret.txt" in sent
    assert "the content of the file" not in sent


async def test_a_message_that_comes_with_the_answer_has_a_turn_of_its_own(house: House) -> None:
    inbox = MemoryInbox()
    texts: list[str] = []

    def hear(delta: str) -> None:
        if not texts:
            inbox.put("Message from critic:\none more thing")
        texts.append(delta)

    reply = await agent(house).converse(ask("say words"), PATIENT, inbox, hear)
    assert reply.text.startswith("Some words:")
    assert reply.text.endswith("\n\nThe second turn.")
    assert inbox.taken_in == ["Message from critic:\none more thing"]
    assert reply.trace is not None
    assert (reply.trace.turns, reply.trace.note) == (2, "")
    assert reply.usage.output == house.server.audit.tokens.output
    assert reply.cost > 0


async def test_one_that_is_told_nothing_answers_as_ever(house: House) -> None:
    reply = await agent(house).converse(ask("Hello"), PATIENT, MemoryInbox())
    assert (reply.text, house.alive()) == ("The first turn.", [])
