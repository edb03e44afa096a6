"""`muster ask`: what stands on standard output, and every exit code."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from muster.cli.main import run
from tests.rehearsal import ForkedRehearsal

from .shell import COMMAND, PATIENCE, Shell

MODEL = "anthropic/claude-haiku-5-5"


def test_standard_output_holds_only_the_answer(shell: Shell) -> None:
    result = shell.muster("ask", "sim/echo", "hello [bold]there[/bold]")
    assert (result.code, result.out) == (0, "hello [bold]there[/bold]\n")
    assert "sim/echo" in result.err
    assert "in, " in result.err
    assert f"run {shell.run('last')['id']}" in result.err


def test_quiet_leaves_out_the_footer(shell: Shell) -> None:
    result = shell.muster("ask", "sim/echo", "hello", "--quiet")
    assert (result.out, result.err) == ("hello\n", "")


def test_a_dash_reads_the_prompt_from_standard_input(shell: Shell) -> None:
    assert shell.muster("ask", "sim/echo", "-", stdin="from a pipe: ä\n").out == "from a pipe: ä\n"


@pytest.mark.parametrize("prompt", [b"", b"  \n", b"\xff\xfe"])
def test_a_prompt_that_is_empty_or_no_text_is_a_bad_argument(shell: Shell, prompt: bytes) -> None:
    assert shell.muster("ask", "sim/echo", "-", stdin=prompt).code == 2


def test_without_a_prompt_the_question_is_read_from_standard_input(shell: Shell) -> None:
    assert shell.muster("ask", "sim/echo", stdin="hello\nworld").out == "hello\nworld\n"
    empty = shell.muster("ask", "sim/echo", stdin=b"")
    assert (empty.code, "PROMPT is empty" in empty.err) == (2, True)
    code, told = on_terminal(shell, "ask", "sim/echo", typing=True)
    assert (code, "no prompt given" in told) == (2, True)


@pytest.mark.parametrize(
    ("agent", "near"),
    [
        ("anthropic/claude-hiku-5-5", "anthropic/claude-haiku-5-5"),
        ("openai/gpt4o-mini", "openai/gpt-4o-mini"),
        ("antropic/claude-haiku-5-5", "anthropic/claude-haiku-5-5"),
        ("claude-haiku-5-5", "anthropic/claude-haiku-5-5"),
        ("sim/ehco", "sim/echo"),
        ("parot", "parrot"),
        ("declared", "claude-haiku-5-5"),
    ],
)
def test_a_name_that_is_close_to_a_known_one_is_told(shell: Shell, agent: str, near: str) -> None:
    nobody = "http://127.0.0.1:9"
    shell.variables |= {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": nobody}
    shell.variables |= {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": nobody}
    declared = '[agents.declared]\nkind = "anthropic"\nmodel = "claude-hiku-5-5"\n'
    shell.write("muster.toml", f'[agents.parrot]\nkind = "scripted"\n{declared}')
    refused = shell.muster("ask", agent, "hello", "--json")
    assert refused.code == 3
    assert refused.error()["suggestions"][0].startswith("did you mean ")
    assert near in refused.error()["suggestions"][0]


def test_json_gives_one_envelope(shell: Shell) -> None:
    result = shell.muster("ask", "sim/echo", "hello", "--json", "--name", "greeting")
    data = result.data()
    assert result.envelope()["command"] == "ask"
    assert (data["text"], data["quality"], data["model"]) == ("hello", "good", "sim/echo")
    assert data["tokens"] == {"input": 2, "output": 2}
    assert shell.run("greeting")["id"] == data["run"]


def test_shared_options_may_stand_before_the_command(shell: Shell) -> None:
    assert shell.muster("--json", "--home", "elsewhere", "ask", "sim/echo", "hello").data()["text"] == "hello"
    assert (shell.folder / "elsewhere" / "muster.db").exists()
    assert not (shell.folder / ".muster").exists()


def test_a_model_behind_the_api_is_asked_and_paid_once(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    result = shell.muster("ask", MODEL, "hello", "--system", "Be short.", "--max-tokens", "50", "--temperature", "0.5")
    assert (result.code, result.out) == (0, "hello\n")
    assert "$0.00000" in result.err
    assert rehearsal.audit().calls == 1


@pytest.mark.parametrize(("agent", "told"), [("refuse", "refused"), ("cut", "cut"), ("empty", "empty")])
def test_a_reply_that_is_not_good_is_printed_told_and_exits_1(shell: Shell, agent: str, told: str) -> None:
    result = shell.muster("ask", f"sim/{agent}", "hello")
    assert result.code == 1
    assert f"warning: the a{'gent' if agent == 'refuse' else 'nswer'}" in result.err
    assert told in result.err
    assert result.out == {"refuse": "I will not help with that.\n", "cut": "hello\n", "empty": "\n"}[agent]
    envelope = shell.muster("ask", f"sim/{agent}", "hello", "--json").envelope()
    assert envelope["error"]["code"] == envelope["data"]["quality"] == told


def test_a_call_that_fails_exits_1(shell: Shell) -> None:
    result = shell.muster("ask", "sim/fail", "hello")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: run ")


@pytest.mark.parametrize("budget", ["0", "-1", "much", "nan", "0.00000001"])
def test_a_budget_that_is_none_exits_2_and_stores_nothing(shell: Shell, budget: str) -> None:
    assert shell.muster("ask", "sim/echo", "hello", "--budget", budget).code == 2
    assert shell.muster("runs", "list", "--json").data() == []


@pytest.mark.parametrize("number", ["١", "1_000", " 1", "1 000", "", "+1", "1e3", "1e400", "inf", "nan", "0x10", "１"])
def test_a_number_that_people_do_not_write_exits_2_and_stores_nothing(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ("--home", str(tmp_path / "home"))
    for option in ("--budget", "--max-tokens", "--timeout", "--temperature"):
        if number == "+1" and option != "--budget":
            continue  # a sign is part of a number, but not of an amount
        assert run(["ask", "sim/echo", "hello", option, number, *home]) == 2, option
    assert "--budget must be an amount in dollars" in capsys.readouterr().err
    assert run(["runs", "list", "--json", *home]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == []


def test_a_budget_too_small_for_one_call_exits_1_before_anything_is_sent(
    shell: Shell, rehearsal: ForkedRehearsal
) -> None:
    shell.use(rehearsal)
    result = shell.muster("ask", MODEL, "hello", "--budget", "0.000001", "--json")
    assert result.code == 1
    assert result.error()["code"] == "budget"
    assert rehearsal.audit().requests == 0


def test_a_key_that_is_not_set_exits_3_and_names_the_variable(shell: Shell) -> None:
    result = shell.muster("ask", MODEL, "hello")
    assert result.code == 3
    assert "ANTHROPIC_API_KEY" in result.err
    assert shell.muster("runs", "list", "--json").data() == []


def test_a_wrong_key_exits_3_and_is_never_shown(shell: Shell) -> None:
    with ForkedRehearsal(require_key="right") as rehearsal:
        shell.use(rehearsal, key="sk-wrong-and-secret")
        result = shell.muster("ask", MODEL, "hello")
        shown = shell.muster("runs", "show", "last", "--json", "--calls", "--events")
    assert result.code == 3
    assert "sk-wrong" not in result.err + shown.out
    assert shown.data()["ended_reason"] == "auth_refused"


@pytest.mark.parametrize("agent", ["nobody", "sim/nobody", "mystery/model", "anthropic/"])
def test_an_agent_that_there_is_not_exits_3_with_what_would_do(shell: Shell, agent: str) -> None:
    result = shell.muster("ask", agent, "hello", "--json")
    assert result.code == 3
    assert result.error()["suggestions"]


def test_a_model_without_a_price_exits_3_unless_allowed(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    refused = shell.muster("ask", "anthropic/no-such-model", "hello")
    assert refused.code == 3
    assert "--allow-unpriced" in refused.err
    assert shell.muster("ask", "anthropic/no-such-model", "hello", "--allow-unpriced").code == 0
    assert rehearsal.audit().calls == 1


def test_a_request_that_is_refused_exits_1_and_a_model_that_there_is_not_3(shell: Shell) -> None:
    with ForkedRehearsal(faults={"rates": {"400": 1}}) as rehearsal:
        shell.use(rehearsal)
        assert shell.muster("ask", MODEL, "hello").code == 1
        rehearsal.faults({"script": [{"fault": "404", "times": "always"}]})
        assert shell.muster("ask", MODEL, "hello").code == 3


def test_a_provider_that_cannot_be_reached_exits_4(shell: Shell) -> None:
    shell.variables |= {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": "any"}
    result = shell.muster("ask", MODEL, "hello", "--json")
    assert (result.code, result.error()["code"]) == (4, "retries_exhausted")


def test_a_run_out_of_time_exits_1(shell: Shell) -> None:
    result = shell.muster("ask", "sim/slow", "hello", "--timeout", "0.1", "--json")
    assert (result.code, result.error()["code"]) == (1, "timeout")
    assert shell.run("last")["state"] == "timeout"


@pytest.mark.parametrize("name", ["last", "", " "])
def test_a_name_that_would_mislead_is_refused(shell: Shell, name: str) -> None:
    assert shell.muster("ask", "sim/echo", "hello", "--name", name).code == 2


def test_a_malformed_configuration_exits_3_with_its_place(shell: Shell) -> None:
    shell.write("muster.toml", "[agents.x]\nkind = oops\n")
    result = shell.muster("ask", "sim/echo", "hello")
    assert result.code == 3
    assert "muster.toml:2:8" in result.err


def test_a_store_that_cannot_be_made_exits_4(shell: Shell) -> None:
    shell.write("file", "")
    result = shell.muster("ask", "sim/echo", "hello", "--home", "file/home")
    assert result.code == 4
    assert "--home" in result.err


def test_a_pipe_gets_the_text_as_it_is_and_a_terminal_without_what_it_would_obey(shell: Shell) -> None:
    prompt = "plain \x1b[31mred\x1b[0m \x1b]0;title\x07end"
    assert shell.muster("ask", "sim/echo", prompt).out == prompt + "\n"
    assert on_terminal(shell, "ask", "sim/echo", prompt, "--quiet") == (0, "plain red end\r\n")


def test_on_a_terminal_the_text_streams(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    code, shown = on_terminal(shell, "ask", MODEL, "one two three four five six seven", "--quiet")
    assert (code, shown) == (0, "one two three four five six seven\r\n")
    spec_streams = shell.muster("runs", "show", "last", "--json", "--events").data()["events"]
    assert [event["kind"] for event in spec_streams][-2:] == ["call.done", "run.completed"]


def test_an_answer_that_breaks_off_is_told_and_written_anew(shell: Shell) -> None:
    faults = {"script": [{"fault": "cut_stream", "nth": 1}]}
    text = "one two three four five six seven eight nine ten eleven twelve"
    with ForkedRehearsal(faults=faults) as rehearsal:
        shell.use(rehearsal)
        code, shown = on_terminal(shell, "ask", MODEL, text)
    assert code == 0
    assert "sending the call again" in shown
    assert text in shown.replace("\r\n", "\n").splitlines()
    assert "uncertain" in shown


def on_terminal(shell: Shell, *arguments: str, typing: bool = False) -> tuple[int, str]:
    """Run a command with a terminal as its output, or its input too, and give its exit code and what was shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=shell.folder,
        env={**shell.environment, "TERM": "xterm"},
        stdin=theirs if typing else subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
        code = process.wait(PATIENCE)
    os.close(ours)
    return code, shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other side has closed
        return b""


def test_why_it_takes_long_is_told(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    rehearsal.faults({"script": [{"fault": "529", "nth": 1, "times": 1}]})
    shell.use(rehearsal)
    done = shell.muster("ask", "anthropic/claude-haiku-5-5", "hi")
    assert (done.code, done.out.strip()) == (0, "hi")
    assert "attempt 1:" in done.err
    assert "trying again in" in done.err
    assert "trying again" not in shell.muster("ask", "anthropic/claude-haiku-5-5", "ho", "--quiet").err


@pytest.mark.parametrize("budget", ["1e30", "1e99999999", "nan", "-inf"])
def test_a_budget_beyond_reason_is_a_bad_argument(shell: Shell, budget: str) -> None:
    assert shell.muster("ask", "sim/echo", "hi", "--budget", budget).code == 2


@pytest.mark.parametrize("words", [["--timeout", "nan"], ["--max-tokens", "9" * 23]])
def test_numbers_beyond_reason_are_bad_arguments(shell: Shell, words: list[str]) -> None:
    assert shell.muster("ask", "sim/echo", "hi", *words).code == 2


def test_an_answer_that_cannot_be_written_is_told_in_one_line(shell: Shell) -> None:
    with Path("/dev/full").open("wb") as full:
        done = shell.run_into(full, "ask", "sim/echo", "hi", "--json")
    assert done.code == 4
    assert "cannot write to standard output" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("ask", "nobody", "hi"), "AGENT"),
        (("task", "submit", "x", "--agent", "nobody"), "--agent"),
        (("run", "cases.yaml", "--agent", "nobody"), "--agent[0]"),
        (("run", "cases.yaml", "--agent", "sim/echo", "--judge", "nobody"), "--judge"),
    ],
)
def test_an_agent_that_is_unknown_is_told_by_its_option(shell: Shell, words: tuple[str, ...], field: str) -> None:
    asked, expected = "{messages: [{role: user, content: hi}]}", "{output: [{kind: contains, value: hi}]}"
    case = f"{{id: greeter/a, input: {asked}, expected: {expected}}}"
    (shell.folder / "cases.yaml").write_text(f"schema_version: 1\nskill_or_agent: greeter\ncases: [{case}]\n")
    done = shell.muster(*words, "--json")
    assert (done.code, [flaw["path"] for flaw in done.error()["fields"]]) == (3, [field])


@pytest.mark.parametrize("words", [["--json"], ["runs", "--json"]])
def test_even_help_is_an_envelope_when_json_is_wanted(shell: Shell, words: list[str]) -> None:
    assert "Usage" in shell.muster(*words).data()["help"]


def test_the_version_is_an_envelope_too_when_json_is_wanted(shell: Shell) -> None:
    told = shell.muster("--version").out.split()
    assert told[0] == "muster"
    assert shell.muster("--version", "--json").data() == {"version": told[1]}
