"""Questions for permission in plain text: found by the patterns of a section, and by nothing else."""

import pytest

from muster.agents.cli.questions import QuestionPatterns, TextQuestion
from muster.domain.errors import BadConfiguration, BadOutput, PermissionAsked

from .stage import Stage, call, declared, section_of

ASKS = r"^Allow (?P<tool>\w+)\? \[y/N\]"
WAITS = "import sys, time\nsys.stdout.write({text!r})\nsys.stdout.flush()\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("Allow Bash? [y/N] ", "Bash"),
        ("I would write: Allow Bash? [y/N]", None),
        ("git@host: Permission denied (publickey).", None),
        ("permission denied (publickey)", None),
    ],
)
def test_the_pattern_of_the_documentation_finds_questions_and_no_failures(line: str, tool: str | None) -> None:
    found = QuestionPatterns(declared("prompting").permission_patterns).find(line)
    assert (found and found.tool) == tool


def test_without_patterns_nothing_is_a_question() -> None:
    assert section_of(command=("x",)).permission_patterns == ()
    assert QuestionPatterns().find("Allow Bash? [y/N]") is None


def test_a_pattern_need_not_name_the_tool_and_long_lines_are_cut() -> None:
    found = QuestionPatterns((r"Proceed\?",)).find("x" * 5000 + " Proceed?")
    assert found is not None
    assert (found.tool, len(found.line)) == ("", 2000)
    assert QuestionPatterns((r"zzz", ASKS)).find("Allow Bash? [y/N]") == TextQuestion(
        tool="Bash", line="Allow Bash? [y/N]"
    )


def test_a_pattern_that_takes_too_long_is_told() -> None:
    with pytest.raises(BadOutput, match=r"permission_patterns: the pattern .* takes too long"):
        QuestionPatterns((r"(a|aa)+$",)).find("a" * 1500 + "b")


def test_what_is_not_a_regular_expression_is_refused_when_it_is_loaded(stage: Stage) -> None:
    with pytest.raises(BadConfiguration, match=r"agent 'one': permission_patterns: '\(' is not a regular expression"):
        stage.python("", permission_patterns=("(",))


@pytest.mark.parametrize("output", ["text", "json"])
async def test_an_agent_that_asks_and_waits_is_stopped_at_once(stage: Stage, output: str) -> None:
    places = {} if output == "text" else {"answer": "$.text"}
    agent = stage.python(
        WAITS.format(text="Working\nAllow Bash? [y/N] "), permission_patterns=(ASKS,), output=output, **places
    )
    with pytest.raises(PermissionAsked, match="asks for permission to use Bash") as caught:
        await call(agent)
    assert (caught.value.tool, caught.value.arguments) == ("Bash", {"text": "Allow Bash? [y/N]"})
    assert caught.value.session == ""
    assert stage.alive() == []


async def test_a_question_between_lines_of_json_can_be_continued(stage: Stage) -> None:
    places = {"output": "jsonl", "answer": "$.text", "session": "$.session", "resume": ("--resume", "{session}")}
    agent = stage.python(
        WAITS.format(text='{"session": "s1"}\nAllow Bash? [y/N] '), permission_patterns=(ASKS,), **places
    )
    with pytest.raises(PermissionAsked) as caught:
        await call(agent)
    assert (caught.value.tool, caught.value.session) == ("Bash", "s1")


async def test_a_refused_key_is_a_failure_and_no_question(stage: Stage) -> None:
    said = "print('git@host: Permission denied (publickey).')"
    assert (await call(stage.python(said, permission_patterns=(ASKS,)))).text.endswith("(publickey).")


async def test_granted_tools_are_told_before_the_end_of_the_options(stage: Stage) -> None:
    agent = stage.agent(
        section_of(
            command=("echo", "start", "--", "{prompt}"),
            resume=("--resume", "{session}"),
            allow=("--allow-tool", "{tool}"),
        )
    )
    settings = {"granted_tools": ["Bash", "{prompt}"]}
    reply = await call(agent, "hi", settings=settings, volatile={"session": "s"})
    assert reply.text == "start --resume s --allow-tool Bash --allow-tool {prompt} -- hi"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"command": ("x", "{tool}")}, "not every call has a granted tool"),
        ({"command": ("x",), "allow": ("--allow", "{tool}")}, "and resume"),
        ({"command": ("x",), "allow": ("--yes",), "resume": ("{session}",)}, 'need "{tool}"'),
    ],
)
def test_arguments_for_grants_that_can_never_work_are_refused(
    stage: Stage, settings: dict[str, object], told: str
) -> None:
    with pytest.raises(BadConfiguration, match=told):
        stage.agent(section_of(**settings))
