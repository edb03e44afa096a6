"""Some clients add a word for the model after the last turn; rules look at the turn."""

import pytest

from muster.domain.call import Message, Role
from muster.sim.files import read_script
from muster.sim.options import Options
from muster.sim.protocols.ask import Ask
from muster.sim.server import serve
from tests.sim.wire import ANTHROPIC, ask

USER = Message(role=Role.USER, text="the question")
REMINDER = Message(role=Role.SYSTEM, text="a reminder")


@pytest.mark.parametrize(
    ("sent", "spoken", "text"),
    [
        ((USER,), (USER,), "the question"),
        ((USER, REMINDER, REMINDER), (USER,), "the question"),
        ((REMINDER, USER), (REMINDER, USER), "the question"),
        ((REMINDER,), (REMINDER,), "a reminder"),
    ],
)
def test_a_reminder_after_the_last_turn_is_not_what_was_said(
    sent: tuple[Message, ...], spoken: tuple[Message, ...], text: str
) -> None:
    asked = Ask(model="m", messages=sent, max_tokens=9)
    assert (asked.spoken, asked.text) == (spoken, text)


async def test_a_rule_speaks_although_a_reminder_came_after_its_words() -> None:
    script = read_script({"rules": [{"text": "question", "answer": "The answer."}], "otherwise": "Pardon?"})
    messages = [{"role": "user", "content": "a question"}, {"role": "system", "content": "a reminder"}]
    body = {"model": "m", "max_tokens": 99, "messages": messages}
    async with serve(Options(script=script)) as server:
        answer = await ask(server, body, f"{ANTHROPIC}?beta=true")
    assert answer.json()["content"] == [{"type": "text", "text": "The answer."}]
