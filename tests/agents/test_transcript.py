"""A conversation as one text."""

from muster.agents.local import transcript_of
from muster.domain.call import Message, Request, Role, ToolCall, ask

TURNS = Request(
    system="Be brief.",
    messages=(
        Message(role=Role.USER, text="Weather?"),
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="1", name="look", arguments={"at": "sky"}),)),
        Message(role=Role.TOOL, text="sunny", tool_call_id="1"),
        Message(role=Role.ASSISTANT, text="Sunny."),
        Message(role=Role.USER, text="And tomorrow?"),
    ),
)


def test_one_message_stands_as_it_is() -> None:
    assert transcript_of(ask("User: {hello}\n")) == "User: {hello}\n"
    assert transcript_of(ask("hello", system="Be brief.")) == "Be brief.\n\nhello"


def test_several_messages_are_turns() -> None:
    assert transcript_of(TURNS) == (
        'Be brief.\n\nUser: Weather?\n\nAssistant: [look {"at": "sky"}]\n\nTool: sunny\n\n'
        "Assistant: Sunny.\n\nUser: And tomorrow?"
    )


def test_the_system_prompt_can_be_left_out() -> None:
    assert transcript_of(ask("hello", system="Be brief."), system=False) == "hello"


def test_a_single_message_needs_no_name_of_who_speaks() -> None:
    assert transcript_of(Request(messages=(Message(role=Role.SYSTEM, text="Begin."),))) == "Begin."
    used = Message(role=Role.ASSISTANT, text="Wait.", tool_calls=(ToolCall(id="1", name="look"),))
    assert transcript_of(Request(messages=(used,))) == "Wait.\n[look {}]"
