"""Hostile prompts, through real processes: as arguments and on standard input."""

import sys

import pytest
from msgspec.structs import replace

from muster.domain.errors import NotStarted, Paid

from .stage import SCRIPTED, Stage, call, declared, section_of

HOSTILE = [
    "{prompt} {budget} {{model}} {",
    "several\nlines\r\n\n\n",
    "$(touch owned) `touch owned`; touch owned | touch owned && $HOME %PATH% ~",
    "\"double\" 'single' \\back\\slash\\",
    "--help",
    "-",
    "--",
    "Grüße 🎉 \u202e\u200b",
    " ",
]


@pytest.mark.parametrize("prompt", HOSTILE)
async def test_a_hostile_prompt_arrives_unchanged(stage: Stage, prompt: str) -> None:
    section = declared("simulated")
    argued = stage.agent(replace(section, command=(*SCRIPTED, "--", "{prompt}")))
    assert (await call(argued, prompt)).text == prompt
    assert (await call(stage.rehearsal(), prompt)).text == prompt
    assert list(stage.folder.iterdir()) == []


async def test_a_prompt_that_would_be_an_option_is_refused_before_anything_starts(stage: Stage) -> None:
    agent = stage.agent(replace(declared("simulated"), command=(*SCRIPTED, "{prompt}")))
    with pytest.raises(NotStarted, match="the prompt begins with '-' and would be taken for an option") as caught:
        await call(agent, "--audit=/owned")
    assert (stage.started, caught.value.paid) == (0, Paid.NO)
    assert '"--"' in caught.value.suggestions[0]


async def test_a_nul_is_refused_as_an_argument_and_taken_as_input(stage: Stage) -> None:
    agent = stage.agent(replace(declared("simulated"), command=(*SCRIPTED, "--", "{prompt}")))
    with pytest.raises(NotStarted, match="agent 'one': the prompt contains a NUL character"):
        await call(agent, "a\0b")
    assert stage.started == 0
    assert (await call(stage.rehearsal(), "a\0b")).text == "a\0b"


async def test_a_prompt_too_long_for_an_argument_is_refused_as_one_and_taken_as_input(stage: Stage) -> None:
    prompt = "wörd " * 50_000
    agent = stage.agent(replace(declared("simulated"), command=(*SCRIPTED, "--", "{prompt}")))
    with pytest.raises(NotStarted, match="allows at most 131,071") as caught:
        await call(agent, prompt)
    assert "standard input" in caught.value.suggestions[0]
    assert stage.started == 0
    assert (await call(stage.rehearsal(), prompt)).text == prompt


async def test_the_input_is_empty_where_the_prompt_is_an_argument(stage: Stage) -> None:
    program = "import sys; print(sys.argv[1:], repr(sys.stdin.read()))"
    argued = section_of(command=(sys.executable, "-c", program, "{prompt}"))
    assert (await call(stage.agent(argued), "hello")).text == "['hello'] ''"
    assert (await call(stage.python(program), "hello")).text == "[] 'hello'"


async def test_half_a_character_is_spelled_out(stage: Stage) -> None:
    assert (await call(stage.rehearsal(), "a\ud800b")).text == "a\\ud800b"


async def test_a_system_prompt_has_its_own_place_where_there_is_one(stage: Stage) -> None:
    section = replace(declared("simulated"), command=(*SCRIPTED, "--model={system}"))
    reply = await call(stage.agent(section), "hello", system="Be {brief}.")
    assert reply.text == "hello"


async def test_a_session_that_would_be_an_option_is_refused(stage: Stage) -> None:
    with pytest.raises(NotStarted, match="the session begins with '-'"):
        await call(stage.rehearsal(), volatile={"session": "--audit=/owned"})
    assert stage.started == 0


async def test_a_session_is_refused_where_nothing_says_how_to_go_on(stage: Stage) -> None:
    with pytest.raises(NotStarted, match="a session cannot be resumed") as caught:
        await call(stage.rehearsal(resume=(), allow=()), volatile={"session": "s"})
    assert "resume" in caught.value.suggestions[0]
