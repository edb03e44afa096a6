"""Conversations: told once, in order, with tools, failures and recorded answers."""

from dataclasses import replace
from pathlib import Path

from muster.domain.call import Message, Reply, Role, Stop, ToolCall
from muster.domain.case import Status
from muster.domain.entry import EntryState
from muster.suites.journal import ANSWERS
from muster.suites.reports.run import Spoken, last_answer, turns
from tests.suites.reports.house import Story, called, case, opened, result

WEATHER = ToolCall(id="t1", name="weather", arguments={"city": "Oslo"})


def test_every_request_repeats_what_was_said_and_it_is_told_once() -> None:
    asked = [Message(role=Role.USER, text="hello")]
    first = called("a", "one", asked=asked, system="be kind")
    said = [*asked, Message(role=Role.ASSISTANT, text="one"), Message(role=Role.USER, text="and then?")]
    second = called("a", "two", asked=said, system="be kind")
    assert [(turn.role, turn.text) for turn in turns([*first, *second])] == [
        ("system", "be kind"), ("user", "hello"), ("assistant", "one"), ("user", "and then?"), ("assistant", "two"),
    ]  # fmt: skip


def test_tool_calls_stand_with_arguments_and_results() -> None:
    wants = Reply(text="", stop=Stop.TOOL_USE, tool_calls=(WEATHER,))
    found = turns(called("a", wants, "It rains."))
    assert [turn.role for turn in found] == ["user", "assistant", "tool", "assistant"]
    (use,) = found[1].uses
    assert (use.name, use.arguments, use.result) == ("weather", '{\n  "city": "Oslo"\n}', None)
    assert found[2].text == "4 tickets are open"


def test_tools_that_an_agent_used_by_itself_keep_their_results() -> None:
    used = replace(WEATHER, result="no such city", failed=True)
    found = turns(called("a", Reply(text="I do not know.", stop=Stop.END, tool_calls=(used,))))
    assert [(use.result, use.failed) for use in found[-1].uses] == [("no such city", True)]


def test_a_call_that_failed_ends_the_conversation_with_its_reason() -> None:
    (entry,) = called("a", "never said")
    failed = replace(entry, state=EntryState.FAILED, reply=None, error={"code": "x", "message": "it broke"})
    assert [(turn.role, turn.text) for turn in turns([failed])] == [("user", "please a"), ("failure", "it broke")]
    assert last_answer([failed]) == ""
    assert last_answer([*called("a", "said before"), failed]) == "said before"


async def test_recorded_answers_are_told_like_any_other(tmp_path: Path) -> None:
    story = Story(
        cases=[case("a")],
        results=[result("a", subject="recorded", keys=())],
        agents=(),
        more={"answers": "answers.jsonl"},
        steps={ANSWERS: {"a": "as it was recorded"}},
    )
    async with opened(tmp_path, story) as (suite, report):
        spoken = Spoken(suite)
        assert report.ok
        assert await spoken.answer(story.results[0]) == "as it was recorded"
        found = await spoken.conversation(story.cases[0], story.results[0])
        assert [(turn.role, turn.text) for turn in found] == [("user", "please a"), ("assistant", "as it was recorded")]


async def test_a_case_that_broke_off_says_why_where_the_conversation_ends(tmp_path: Path) -> None:
    late = result("a", Status.TIMED_OUT, error={"code": "out_of_time", "message": "its 3 s were over"})
    story = Story(cases=[case("a")], results=[late], calls=called("a", "so far"))
    async with opened(tmp_path, story) as (suite, _):
        found = await Spoken(suite).conversation(story.cases[0], late)
    assert [(turn.role, turn.text) for turn in found][-2:] == [
        ("assistant", "so far"),
        ("failure", "its 3 s were over"),
    ]
