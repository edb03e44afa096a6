"""How servers spell the limit of tokens: as muster.toml says, else as is guessed, and found out from a refusal."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from muster.agents.openai.wire import LimitSpelling, MaxTokens, encode
from muster.app import Muster, open_muster
from muster.domain.call import ask
from muster.domain.errors import RunFailed
from muster.engine.batches.base import Patience
from muster.settings import load_settings
from muster.sim.options import Options
from muster.sim.server import Server, serve

HASTY = Patience(settle=0.02, poll_first=0.02, poll_longest=0.1)
PRICE = "price = { input = 1, output = 2 }\n"
SECTION = '[agents.mine]\nkind = "openai"\nmodel = "deployment-o3"\nkey_env = "OPENAI_API_KEY"\n' + PRICE


@asynccontextmanager
async def opened(folder: Path, more: str = "") -> AsyncIterator[tuple[Muster, Server]]:
    """Open a store before a server whose models with o3 in their names refuse the old name of the limit."""
    async with serve(Options()) as server:
        (folder / "muster.toml").write_text(f'{SECTION}base_url = "{server.openai}"\n{more}', encoding="utf-8")
        settings = load_settings(folder=folder, environment={"OPENAI_API_KEY": "sk-test-0123456789"})
        async with open_muster(settings=settings, patience=HASTY) as muster:
            yield muster, server


async def test_a_refused_name_of_the_limit_is_tried_once_under_the_other_and_remembered(tmp_path: Path) -> None:
    async with opened(tmp_path) as (muster, server):
        first = await muster.ask("mine", "hello", name="first")
        second = await muster.ask("mine", "hello again", name="second")
        calls = [(await muster.runs.attempts(name))[0] for name in ("first", "second")]
        runs = [await muster.runs.find(name) for name in ("first", "second")]
    assert (first.text, second.text) == ("hello", "hello again")
    refused, answered = calls[0].attempts
    assert (str(refused.state), refused.cost, (refused.error or {})["code"]) == ("failed", 0, "respelled")
    assert (str(answered.state), len(calls[1].attempts)) == ("succeeded", 1)
    assert [run.spent.uncertain for run in runs] == [0, 0]
    assert (server.audit.calls, server.audit.requests) == (2, 3)


async def test_the_setting_is_what_is_sent(tmp_path: Path) -> None:
    async with opened(tmp_path, 'max_tokens_field = "max_completion_tokens"\n') as (muster, server):
        await muster.ask("mine", "hello")
        await muster.ask("mine", "hello in a batch", dispatch="batch")
    assert server.audit.statuses == {"200": server.audit.requests}
    assert server.audit.calls == 2


async def test_a_setting_that_is_refused_is_not_overruled(tmp_path: Path) -> None:
    async with opened(tmp_path, 'max_tokens_field = "max_tokens"\n') as (muster, server):
        with pytest.raises(RunFailed, match="Use 'max_completion_tokens' instead"):
            await muster.ask("mine", "hello")
    assert server.audit.requests == 1


OLD, NEW = (encode(ask('say "max_completion_tokens": 1'), "m", max_tokens=field) for field in reversed(MaxTokens))


@pytest.mark.parametrize(
    ("sent", "refusal", "again"),
    [
        (OLD, "Use 'max_completion_tokens' instead.", True),
        (NEW, "Unrecognized request argument supplied: max_completion_tokens", True),
        (NEW, "max_completion_tokens: field not supported, use max_tokens", True),
        (OLD, "max_tokens is too large: 9999", False),
        (NEW, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens", False),
        (OLD, "the prompt is too long", False),
    ],
)
def test_only_a_refusal_of_the_name_is_worth_a_second_try(sent: bytes, refusal: str, again: bool) -> None:
    spelling = LimitSpelling(MaxTokens.NEW if sent is NEW else MaxTokens.OLD)
    assert spelling.learn(sent, refusal) is again
    assert (spelling.field in json.loads(sent)) is not again


def test_a_server_that_refuses_both_names_is_asked_twice_at_most() -> None:
    spelling = LimitSpelling(MaxTokens.OLD)
    assert spelling.learn(OLD, "unknown field max_tokens")
    assert not spelling.learn(NEW, "unknown field max_completion_tokens")
    assert spelling.field is MaxTokens.OLD  # and the next call begins with the guess again
