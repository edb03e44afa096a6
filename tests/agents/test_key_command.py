"""A key that a program prints: once for all, again when it is old or refused, and kept nowhere."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.agents.printed_keys.key_command import KeyCommand, PrintedKey
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.domain.errors import AuthRefused, BadConfiguration, RunFailed
from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.testing.agents import RememberedProcesses
from tests.app.test_endpoints import directory

GOOD = "token-number-2-that-is-good"
MODELS = {"anthropic": "claude-haiku-5-5", "openai": "gpt-5-mini"}
PRICE = {"input": 1.0, "output": 2.0}
# Prints another token each time: the first is refused by a server that wants the second.
COUNTING = 'n=$(($(cat runs 2>/dev/null || echo 0) + 1)); echo $n > runs; echo "token-number-$n-that-is-good"'


def written(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "key.sh").write_text(text)
    return ("sh", str(folder / "key.sh"))


@pytest.fixture
async def processes() -> AsyncIterator[ProcessRegistry]:
    registry = ProcessRegistry(RememberedProcesses(), this_process())
    yield registry
    await registry.close()


def printed(processes: ProcessRegistry, folder: Path, text: str, **options: Any) -> PrintedKey:
    command = KeyCommand(
        command=written(folder, text), folder=folder, environment={"PATH": "/usr/bin:/bin"}, lifetime=100.0
    )
    return PrintedKey(command, processes, **{"hide": lambda _: None} | options)


def agent(server: Server, kind: str, folder: Path, text: str = COUNTING) -> dict[str, Any]:
    address = server.anthropic if kind == "anthropic" else server.openai
    written(folder, text)
    command = ["sh", "key.sh"]  # found in the folder of muster.toml
    return {"kind": kind, "model": MODELS[kind], "base_url": address, "key_command": command, "price": PRICE}


def opened(folder: Path, **agents: Mapping[str, Any]) -> Any:
    return muster.open(folder / "state", project=folder, agents=agents)


def runs(folder: Path) -> int:
    return int((folder / "runs").read_text())


def holds(folder: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in (folder / "state").rglob("*") if file.is_file())


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("streams", [False, True])
async def test_a_refused_key_is_printed_again_and_the_attempt_goes_on(tmp_path: Path, kind: str, streams: bool) -> None:
    async with serve(Options(key=GOOD)) as server, opened(tmp_path, a=agent(server, kind, tmp_path)) as m:
        assert [piece async for piece in m.stream("a", "hello")] if streams else await m.ask("a", "hello")
        assert server.audit.statuses == {"401": 1, "200": 1}
        assert "redacted" in (await m.ask("a", f"is {GOOD} yours?")).text
        [_, run] = await m.runs.page()
        [call] = await m.runs.calls(run.id)
        assert call.attempts == 1
    assert runs(tmp_path) == 2
    assert not holds(tmp_path, GOOD)


async def test_one_program_serves_all_calls_that_wait_for_it(tmp_path: Path) -> None:
    text = f"sleep 0.05; {COUNTING.replace('number-$n', 'number-2')}"
    async with serve(Options(key=GOOD)) as server, opened(tmp_path, a=agent(server, "openai", tmp_path, text)) as m:
        await asyncio.gather(*(m.ask("a", f"question {number}") for number in range(8)))
        assert server.audit.calls == 8
    assert runs(tmp_path) == 1


async def test_a_key_that_is_refused_twice_stops_the_run(tmp_path: Path) -> None:
    text = f"{COUNTING.replace('number-$n', 'of-nobody')}"
    async with serve(Options(key=GOOD)) as server, opened(tmp_path, a=agent(server, "openai", tmp_path, text)) as m:
        with pytest.raises(RunFailed) as refused:
            await m.ask("a", "hello")
        assert server.audit.statuses == {"401": 2}
    assert "auth_refused" in str(refused.value.record())
    assert "of-nobody" not in str(refused.value.record())
    assert runs(tmp_path) == 2


async def test_a_batch_goes_out_with_a_printed_key_and_is_known_again_with_another(tmp_path: Path) -> None:
    async with serve(Options(key=None)) as server:
        async with opened(tmp_path, a=agent(server, "openai", tmp_path)) as m:
            assert (await m.ask("a", "hello", dispatch="batch")).text
        assert len(server.audit.batches) == 1
    assert not holds(tmp_path, "token-number")


@pytest.mark.parametrize("kind", MODELS)
def test_an_account_is_known_by_its_command(tmp_path: Path, kind: str) -> None:
    text = f'[agents.a]\nkind = "{kind}"\nmodel = "{MODELS[kind]}"\nkey_command = ["vault", "read", "{{}}"]\n'
    mine, other = text.replace("{}", "mine"), text.replace("{}", "other")
    batching = directory(tmp_path, {}, text=mine).batching("a")
    assert batching is not None
    endpoint = batching.agent.endpoint
    assert directory(tmp_path, {}, text=mine).reopen(endpoint).endpoint == endpoint
    with pytest.raises(BadConfiguration, match="different key or account") as refused:
        directory(tmp_path, {}, text=other).reopen(endpoint)
    assert "key_command" in refused.value.suggestions[0]


async def test_a_key_is_printed_again_when_it_is_old_and_the_last_one_serves_while_that_fails(
    processes: ProcessRegistry, tmp_path: Path
) -> None:
    now, hidden = [0.0], list[str]()
    key = printed(processes, tmp_path, COUNTING, clock=lambda: now[0], hide=hidden.append)
    found = [await key.current(), await key.current()]
    now[0] = 101.0
    found.append(await key.current())
    (tmp_path / "key.sh").write_text("exit 1")
    now[0] = 300.0
    found.append(await key.current())
    assert [one.split("-")[2] for one in found] == ["1", "1", "2", "2"]
    assert hidden == [found[0], found[2]]
    with pytest.raises(AuthRefused):
        await key.after(found[2])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo not logged in >&2; echo secret-word; exit 3", "ended with status 3: not logged in"),
        ("exit 0", "printed nothing"),
        ("echo two words", "something else than one word"),
        ("printf 'one\\nother'", "something else than one word"),
        ("head -c 20000 /dev/zero | tr '\\0' x; sleep 5", "more than 16,384 characters"),
    ],
)
async def test_what_is_no_key_is_told_without_what_was_printed(
    processes: ProcessRegistry, tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(AuthRefused, match=told) as refused:
        await printed(processes, tmp_path, text).current()
    assert "secret-word" not in str(refused.value)


async def test_a_program_that_is_not_there_is_told(processes: ProcessRegistry) -> None:
    command = KeyCommand(command=("no-such-program",), environment={"PATH": "/usr/bin"})
    with pytest.raises(AuthRefused, match="failed to spawn 'no-such-program'"):
        await PrintedKey(command, processes, hide=lambda _: None).current()


async def test_a_program_gets_home_and_what_is_passed_and_no_other_variable(
    processes: ProcessRegistry, tmp_path: Path
) -> None:
    text = '[agents.a]\nkind = "openai"\nmodel = "gpt-5-mini"\nkey_command = ["sh", "key.sh"]\n'
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/h", "VAULT": "passed", "OTHER": "hidden"}
    written(tmp_path, "echo x$HOME-$VAULT-$OTHER")
    hidden: list[str] = []
    async with serve(Options(key="x/h-passed-")) as server:
        text += f'base_url = "{server.openai}"\nkey_pass_env = ["VAULT"]\n'
        found = directory(tmp_path, environment, text=text, hide=hidden.append, processes=processes)
        assert await found.offered("a")
        await found.close()
    assert hidden == ["x/h-passed-"]
    unset = {name: value for name, value in environment.items() if name != "VAULT"}
    found = directory(tmp_path, unset, text=text)
    with pytest.raises(BadConfiguration, match="needs VAULT, which is not set"):
        await found.offered("a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('key_command = ["x"]\nkey_env = "Y"', "key_command: cannot stand beside key_env"),
        ('key_command = [""]', "key_command: must name a program"),
        ("key_lifetime_secs = 5", "key_lifetime_secs: needs a key_command"),
        ('key_pass_env = ["X"]', "key_pass_env: needs a key_command"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadConfiguration, match=told):
        directory(tmp_path, text=f'[agents.a]\nkind = "openai"\nmodel = "m"\n{text}\n')
