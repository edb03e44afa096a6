"""Half of a surrogate pair is no text that a provider takes: the call that holds it is refused, and no other."""

import asyncio

import pytest

from muster.app import Muster
from muster.domain.call import Message, Request, Role, Tool, ToolCall, identify
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.errors import InvalidRequest
from tests.engine.batches.house import House, ask_all, batch, check_answered, questions

HALF = "half \ud83d of it"
SAID = Message(role=Role.USER, text="hi")
USES = Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c", name="look", arguments={"at": [HALF]}),))

REQUESTS = {
    "messages[0].text": Request(messages=(Message(role=Role.USER, text=HALF),)),
    "system": Request(messages=(SAID,), system=HALF),
    "tools[0].description": Request(messages=(SAID,), tools=(Tool(name="look", description=HALF),)),
    "tools[0].name": Request(messages=(SAID,), tools=(Tool(name=HALF),)),
    "messages[1].tool_calls[0].arguments.at[0]": Request(messages=(SAID, USES)),
    "a name in schema.properties": Request(messages=(SAID,), schema={"type": "object", "properties": {HALF: {}}}),
    "stop[0]": Request(messages=(SAID,), stop=(HALF,)),
    "context.task": Request(messages=(SAID,), context={"task": HALF}),
}


@pytest.mark.parametrize("dispatch", [LIVE, batch()], ids=["live", "batch"])
async def test_it_is_refused_at_its_call_and_the_calls_of_others_go_on(
    house: House, muster: Muster, agent: str, dispatch: Dispatch
) -> None:
    good, other = questions(3), questions(3, "other")
    mixed = {**good, "bad/one": HALF}
    first, second = await asyncio.gather(
        ask_all(muster, agent, mixed, dispatch), ask_all(muster, agent, other, dispatch)
    )
    refused = (first.result or {}).pop("bad/one")
    assert refused["error"] == InvalidRequest.code
    assert "'bad/one': messages[0].text has half of a surrogate pair" in refused["message"]
    check_answered(first, good)
    check_answered(second, other)
    assert house.audit.calls == 6


@pytest.mark.parametrize("place", REQUESTS)
def test_it_is_found_wherever_it_is(place: str) -> None:
    assert identify("anybody", REQUESTS[place]).half == place
