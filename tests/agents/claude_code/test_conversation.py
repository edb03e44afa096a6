"""What is heard in the frames of a conversation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.claude_code.conversation import ClaudeConversation, Frame
from muster.agents.local import MAX_CALLS
from muster.domain.call import Usage

RESULT: dict[str, Any] = {"type": "result", "subtype": "success", "result": "Done.", "session_id": "s"}


def heard(*frames: Frame, **how: Any) -> ClaudeConversation:
    conversation = ClaudeConversation(**how)
    for frame in frames:
        conversation.receive(frame)
    return conversation


def said(*content: Any, **more: Any) -> Frame:
    return {"type": "assistant", "message": {"model": "m", "id": "msg_1", "content": list(content)}, **more}


def used(id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:  # noqa: A002
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def gave(id: str, content: Any, *, is_error: Any = None) -> Frame:  # noqa: A002
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}}


def delta(text: Any, kind: str = "text_delta", parent: str | None = None) -> Frame:
    event = {"type": "content_block_delta", "delta": {"type": kind, "text": text}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def test_a_result_makes_it_over() -> None:
    assert not heard(said()).over
    conversation = heard(RESULT)
    assert conversation.over
    assert conversation.result is not None
    assert (conversation.result.result, conversation.result.session_id) == ("Done.", "s")


def test_a_result_of_another_shape_makes_it_over_too() -> None:
    conversation = heard({"type": "result", "subtype": 7})
    assert conversation.over
    assert conversation.result is None
    assert conversation.unread


def test_uses_of_tools_are_joined_with_what_they_gave() -> None:
    blocks = [{"type": "text", "text": "two "}, {"type": "image"}, {"type": "text", "text": "parts"}]
    conversation = heard(
        said({"type": "text", "text": "I look."}, used("a", command="ls")),
        said(used("b", "Read", path="x")),
        gave("b", blocks),
        gave("a", "no", is_error=True),
    )
    calls = [(call.id, call.name, call.arguments, call.result, call.failed) for call in conversation.calls]
    assert calls == [("a", "Bash", {"command": "ls"}, "no", True), ("b", "Read", {"path": "x"}, "two parts", False)]


def test_what_a_tool_gave_is_cut() -> None:
    conversation = heard(said(used("a")), gave("a", "x" * 5000))
    assert [len(call.result or "") for call in conversation.calls] == [2000]


def test_what_a_tool_is_given_is_cut() -> None:
    (call,) = heard(said(used("a", content="x" * 5000))).calls
    assert call.arguments == {"content": "x" * 1999 + "…"}


def test_long_names_are_cut_and_still_belong_together() -> None:
    conversation = heard(said(used("i" * 5000, "n" * 5000)), gave("i" * 5000, "yes"))
    assert [(call.id, call.name, call.result) for call in conversation.calls] == [("i" * 200, "n" * 200, "yes")]
    asked = heard({"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": "n" * 5000}})
    assert asked.asked == "n" * 200


def test_after_ten_thousand_tools_no_other_is_heard_of() -> None:
    conversation = heard(*(said(used(str(number))) for number in range(MAX_CALLS)), said(used("0")))
    assert not conversation.over
    conversation.receive(said(used("one more")))
    assert (conversation.over, conversation.unread, len(conversation.calls)) == (
        True,
        "used more than 10,000 tools",
        MAX_CALLS,
    )


def test_the_api_has_answered_when_there_is_anything_of_the_models() -> None:
    assert heard(said()).answered
    assert heard({"type": "stream_event", "event": {"type": "message_start"}}).answered
    assert heard({"type": "assistant", "message": {"model": "small"}, "parent_tool_use_id": "toolu_1"}).answered


def test_the_api_has_not_answered_when_only_claude_code_speaks() -> None:
    synthetic = {"type": "assistant", "message": {"model": "<synthetic>", "content": []}}
    retry = {"type": "system", "subtype": "api_retry", "error_status": 401}
    assert not heard({"type": "control_response", "response": {}}, retry, synthetic, RESULT).answered


def test_the_key_is_taken_out_of_what_a_tool_gave_before_it_is_cut() -> None:
    conversation = heard(
        said(used("a")), gave("a", "x" * 1995 + "sk-secret"), scrub=lambda text: text.replace("sk-secret", "[key]")
    )
    assert [call.result for call in conversation.calls] == ["x" * 1995 + "[key]"]


def test_the_tool_in_use_is_the_last_that_has_given_nothing_yet() -> None:
    assert heard(said()).tool is None
    assert heard(said(used("a"), used("b", "Read"))).tool == "Read"
    assert heard(said(used("a"), used("b", "Read")), gave("b", "")).tool == "Bash"
    assert heard(said(used("a")), gave("a", None)).tool is None


def test_giving_the_answer_as_data_is_no_use_of_a_tool() -> None:
    assert heard(said(used("a", "StructuredOutput", answer=1))).calls == ()


def test_text_is_handed_over_as_it_is_written() -> None:
    deltas: list[str] = []
    conversation = heard(delta("a"), delta("b", kind="thinking_delta"), delta(7), delta("c"), on_delta=deltas.append)
    assert (deltas, conversation.spoke) == (["a", "c"], True)


def test_what_a_helper_of_its_own_says_is_not_handed_over() -> None:
    deltas: list[str] = []
    conversation = heard(said(), delta("a", parent="toolu_1"), on_delta=deltas.append)
    conversation.receive(
        {"type": "assistant", "message": {"model": "small", "id": "msg_2"}, "parent_tool_use_id": "toolu_1"}
    )
    assert (deltas, conversation.model, conversation.id) == ([], "m", "msg_1")


def test_messages_that_it_writes_by_itself_are_not_the_models() -> None:
    conversation = heard(said(), {"type": "assistant", "message": {"model": "<synthetic>", "id": "x", "content": []}})
    assert (conversation.model, conversation.id) == ("m", "msg_1")


def test_the_first_tool_that_needs_permission_is_remembered() -> None:
    frames: list[Frame] = [
        {"type": "control_request", "request": {"subtype": "hook_callback"}},
        {"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": "Bash"}},
        {"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": "Write"}},
    ]
    assert heard(frames[0]).asked is None
    conversation = heard(*frames)
    assert (conversation.asked, conversation.over) == ("Bash", False)


def test_it_is_greeted_when_it_has_answered_the_sdk() -> None:
    assert not heard(said()).initialized
    assert heard({"type": "control_response", "response": {}}).initialized


@pytest.mark.parametrize(
    ("status", "keyed", "over"), [(401, True, True), (403, True, True), (529, True, False), (401, False, False)]
)
def test_a_key_that_is_refused_makes_it_over_and_a_login_does_not(status: int, keyed: bool, over: bool) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": status}
    assert heard(retry, keyed=keyed).over is over


KEYS = st.sampled_from(["type", "subtype", "message", "content", "event", "delta", "request", "id", "text", "input"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["assistant", "user", "system", "result", "stream_event", "control_request", "control_response", "new", 7, None]
)


@given(KINDS, st.dictionaries(KEYS, ANYTHING))
def test_no_frame_breaks_it(kind: object, frame: dict[str, Any]) -> None:
    conversation = heard({**frame, "type": kind})
    assert isinstance(conversation.over, bool)
    assert conversation.calls == () or conversation.tool is not None


def test_a_second_result_is_joined_to_the_first() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 5}
    share = {"model_usage_since_last_result": {"m": {"costUSD": 0.01}}}
    first = {**RESULT, "num_turns": 2, "total_cost_usd": 0.01, "usage": usage, "structured_output": {"a": 1}, **share}
    second = {**RESULT, "result": "And that.", "num_turns": 1, "total_cost_usd": 0.02, "usage": usage, **share}
    found = heard(first, second).result
    assert found is not None
    assert (found.result, found.num_turns, found.structured_output) == ("Done.\n\nAnd that.", 3, {"a": 1})
    assert found.tokens == Usage(input=6, output=8, cache_write=10)
    assert (found.cost(resumed=False), found.cost(resumed=True)) == (20_000, 20_000)
