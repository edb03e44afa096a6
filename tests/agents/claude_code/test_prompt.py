from muster.agents.claude_code.prompt import prompt_of, session_of
from muster.domain.call import Message, Request, Role, ask

TALK = (
    Message(role=Role.USER, text="What is it?"),
    Message(role=Role.ASSISTANT, text="A bird."),
    Message(role=Role.TOOL, text="crow"),
    Message(role=Role.USER, text="Which {one}?"),
)


def test_a_single_message_goes_in_as_it_is() -> None:
    assert prompt_of(ask("User: {x}\n$HOME")) == "User: {x}\n$HOME"


def test_more_messages_go_in_as_turns() -> None:
    expected = "User: What is it?\n\nAssistant: A bird.\n\nTool: crow\n\nUser: Which {one}?"
    assert prompt_of(Request(messages=TALK)) == expected


def test_a_session_holds_the_former_turns_already() -> None:
    request = Request(messages=TALK, volatile={"session": "abc"})
    assert (session_of(request), prompt_of(request)) == ("abc", "Which {one}?")


def test_a_session_that_is_no_name_is_none() -> None:
    for session in (None, "", 7, ["abc"]):
        assert session_of(Request(messages=TALK, volatile={"session": session})) is None


def test_a_single_message_of_another_role_is_said_too() -> None:
    assert prompt_of(Request(messages=(Message(role=Role.SYSTEM, text="Begin."),))) == "Begin."
