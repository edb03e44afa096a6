"""Log lines: one for each thing that happens, with its run and its call, and without secrets."""

import io
from pathlib import Path
from typing import Any

import pytest

from muster import Context, workload
from muster.app.base.telemetry import open_log, secret_remover
from muster.domain.errors import BadArgument, InvalidRequest, RunFailed
from muster.domain.ids import RunId
from muster.domain.observation import CallEnded
from muster.observability.logs import make_logger
from muster.observability.options import LogFormat, LogLevel, LogOptions
from muster.settings import load_settings
from tests.engine.batches.house import ANTHROPIC, open_house
from tests.observability.house import lines_of, watched_run

SECRET = "sk-ant-" + "aB3dE5gH7jK9mN1p" * 3


def json_log(file: Path, level: LogLevel = LogLevel.DEBUG) -> LogOptions:
    return LogOptions(format=LogFormat.JSON, level=level, file=file)


def events(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


async def test_every_line_of_a_call_is_json_with_its_run_and_its_key(tmp_path: Path) -> None:
    file = tmp_path / "muster.log"
    async with open_house(tmp_path / "house") as house:
        run = await watched_run(house, log=json_log(file))
    lines = lines_of(file)
    greeting = [line for line in lines if line.get("key") == "greeting"]
    assert all(line["run"] == run.id and line["agent"] == ANTHROPIC for line in greeting)
    assert events(greeting) == [
        "call.began", "attempt.began", "attempt.failed", "attempt.began", "attempt.ended", "call.ended",
    ]  # fmt: skip
    refused = greeting[2]
    assert (refused["level"], refused["error"], refused["attempt"]) == ("warning", "rate_limited", 1)
    assert refused["retry_in_seconds"] > 0
    assert all("run" in line and "key" in line for line in lines if line["event"].startswith(("call.", "attempt.")))
    assert all("run" in line for line in lines if line["event"].startswith("run."))
    (ended,) = [line for line in lines if line["event"] == "run.ended" and line["run"] == run.id]
    assert (ended["state"], ended["workload"], ended["calls"]) == ("completed", "greeting_and_suite", 1)


async def test_at_the_usual_level_there_are_runs_batches_and_what_failed(tmp_path: Path) -> None:
    file = tmp_path / "muster.log"
    async with open_house(tmp_path / "house") as house:
        await watched_run(house, log=json_log(file, LogLevel.INFO))
    assert events(lines_of(file)) == [
        "run.began", "attempt.failed", "run.began", "batch.began", "batch.ended", "run.ended", "run.ended",
    ]  # fmt: skip


async def test_no_prompt_and_no_answer_is_logged(tmp_path: Path) -> None:
    file = tmp_path / "muster.log"
    async with open_house(tmp_path / "house") as house:
        house.play({"fault": "400", "nth": 1})
        async with house.open(log=json_log(file)) as muster:
            with pytest.raises(RunFailed):
                await muster.ask(ANTHROPIC, f"my key is {SECRET}")
            await muster.ask(ANTHROPIC, f"my key is {SECRET}")
    text = file.read_text()
    assert "call.failed" in text
    assert "my key" not in text
    assert SECRET not in text


@workload("quotes_secrets")
async def quotes_secrets(ctx: Context, spec: Any) -> None:
    """Fail with an error that quotes what it was given."""
    raise InvalidRequest(f"{spec} cannot be used")


async def test_the_message_of_an_error_is_logged_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "muster.log"
    configured = "a key that has no form"
    async with open_house(tmp_path / "house") as house:
        environment = house.environment | {"ANTHROPIC_API_KEY": configured}
        async with house.open(log=json_log(file), environment=environment) as muster:
            await (await muster.start("quotes_secrets", f"{configured} and {SECRET}")).wait()
            log = open_log(muster.settings, json_log(file))
            log(CallEnded(RunId("r1"), "k", InvalidRequest(f"{configured} and {SECRET} cannot be used")))
            log.close()
    of_the_run, of_the_call = [line for line in lines_of(file) if line["level"] == "warning"]
    for line in (of_the_run, of_the_call):
        assert line["message"].endswith("cannot be used")
        assert configured not in line["message"]
        assert SECRET not in line["message"]


async def test_a_log_file_is_private_and_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "muster.log"
    async with open_house(tmp_path / "house") as house:
        for _ in range(2):
            async with house.open(log=json_log(file, LogLevel.INFO)) as muster:
                await muster.ask(ANTHROPIC, "hello")
    assert file.stat().st_mode & 0o777 == 0o600
    assert events(lines_of(file)) == ["run.began", "run.ended"] * 2


async def test_a_file_that_cannot_be_written_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with open_house(tmp_path / "house") as house:
        with pytest.raises(BadArgument, match="cannot be written"):
            async with house.open(log=json_log(tmp_path / "nowhere" / "muster.log")):
                pass
        assert not (house.folder / ".muster").exists()


@pytest.mark.parametrize("form", LogFormat)
def test_one_thing_is_one_line_whatever_it_says(form: LogFormat) -> None:
    stream = io.StringIO()
    log = make_logger(stream, LogOptions(format=form), str)
    log.warning("call.failed", message="two\nlines, \x1b[31mred\x1b[0m and " + "long" * 1000)
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert len(line) < 1200


def test_what_strangers_send_is_not_remembered_from_one_line_to_the_next(tmp_path: Path) -> None:
    remove = secret_remover(load_settings(folder=tmp_path, environment={}))
    tokens = [f"ghp_{letter * 30}" for letter in "abc"]
    assert [remove(f"GET /{token}") for token in tokens] == ["GET /[redacted:github_token:1]"] * 3
