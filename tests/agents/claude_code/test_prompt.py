from muster.agents.claude_code.agent import prompt_of
from muster.domain.call import Message, Request, Role, ask

TALK = (
    Message(role=Role.USER, text="What is it?"),
    Message(role=Role.ASSISTANT, text="A bird."),
    Message(role=Role.TOOL, text="crow"),
    Message(role=Role.USER, text="Which {one}?"),
)


def test_a_single_message_goes_in_as_it_is() -> None:
    assert prompt_of(ask("User: {x}\n$HOME")) == "User: {x}\n$HOME"


def test_the_system_prompt_has_another_place() -> None:
    assert prompt_of(ask("Hello", system="Be brief.")) == "Hello"


def test_more_messages_go_in_as_turns() -> None:
    expected = "User: What is it?\n\nAssistant: A bird.\n\nTool: crow\n\nUser: Which {one}?"
    assert prompt_of(Request(messages=TALK)) == expected


def test_a_session_holds_the_former_turns_already() -> None:
    request = Request(messages=TALK, volatile={"session": "abc"})
    assert prompt_of(request) == "Which {one}?"
