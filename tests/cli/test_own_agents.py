"""`muster ask` with agents of the user's own, declared wrongly or misbehaving: what is said, and the exit code."""

import pytest

from .shell import Result, Shell
from .test_ask import on_terminal

SECRET = "tok-0123456789-abcdef"
AWKWARD = 'tok"0123\\456789'
READ = "cat >/dev/null; "
LEAKS = READ + 'printf "the token is %s" "$MY_TOKEN"; echo "log: $MY_TOKEN" >&2'


def program(script: str, *lines: str, mode: str = "plain") -> str:
    """Declare a program that is a line of shell."""
    return section("program", f'mode = "{mode}"', f"command = ['sh', '-c', '''{script}''']", *lines)


def section(kind: str, *lines: str) -> str:
    return "\n".join(["[agents.mine]", f'kind = "{kind}"', *lines, ""])


def asked(shell: Shell, settings: str, *options: str) -> Result:
    shell.write("muster.toml", settings)
    return shell.muster("ask", "mine", "hello", *options)


def bytes_of_the_store(shell: Shell) -> bytes:
    files = [path for path in (shell.folder / ".muster").rglob("*") if path.is_file()]
    assert any(path.name == "muster.db" for path in files)
    return b"".join(path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (section("program"), ["command"]),
        (section("program", 'command = ["./not-there"]'), ["'mine'", "failed to spawn './not-there'"]),
        (section("program", 'command = ["cat"]', 'pass_env = ["NOT_SET"]'), ["NOT_SET", "not set", "pass_env"]),
        (section("program", 'command = ["cat"]', 'working_dir = "nowhere"'), ["failed to spawn", "nowhere"]),
        (section("cli", 'command = ["cat"]'), ["maximum cost", "budget_usd = 0.50", "--allow-unpriced"]),
        (section("cli"), ["muster.toml:1:1", "command"]),
        (
            section("http", 'url = "http://127.0.0.1:1"', 'answer = "text"'),
            ["agents.mine: answer", "is not a JSONPath"],
        ),
        (section("http", 'url = "http://127.0.0.1:1"', 'body = { a = "b" }'), ["no placeholder for the prompt"]),
        (section("http", 'url = "nonsense"'), ["is not a valid address"]),
        (section("python", 'function = "functions:plain"'), ["'mine'", "is not async", "async def"]),
        (section("python", 'function = "functions:nobody"'), ["nobody was not found in functions"]),
        (section("python", 'function = "nowhere:nobody"'), ["nowhere cannot be imported"]),
        (
            section("program", 'command = ["cat"]', 'mode = "xml"'),
            ["muster.toml:", "mode", "exec, plain"],
        ),
        (section("program", 'comand = ["cat"]'), ["muster.toml:", "comand"]),
    ],
)
def test_a_declaration_that_does_not_do_exits_3_and_says_what_to_change(
    shell: Shell, settings: str, words: list[str]
) -> None:
    shell.write("functions.py", "def plain(request):\n    return 'x'\n")
    done = asked(shell, settings)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: ")
    for word in words:
        assert word in done.err


def test_a_setting_that_is_not_known_is_told_with_its_own_line(shell: Shell) -> None:
    done = asked(shell, section("program", 'command = ["cat"]', "retries = 3"))
    assert "muster.toml:4:1: agents.mine: unknown key 'retries'" in done.err


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (
            program("echo the disk is full >&2; echo really >&2; exit 1"),
            "bad_exit",
            "exited with code 1: the disk is full",
        ),
        (program("kill -9 $$"), "bad_exit", "SIGKILL"),
        (program(READ), "bad_output", "it gave no output"),
        (program(READ + 'echo {"content": 1', mode="exec"), "bad_output", "the output is not a valid proposal"),
        (section("python", 'function = "functions:breaks"'), "agent_failed", "raised ZeroDivisionError"),
    ],
)
def test_an_agent_that_fails_exits_1_under_the_code_of_its_failure(
    shell: Shell, settings: str, code: str, words: str
) -> None:
    shell.write("functions.py", "async def breaks(request):\n    return 1 / 0\n")
    done = asked(shell, settings, "--json")
    error = done.envelope()["error"]
    assert (done.code, error["code"]) == (1, code)
    assert words in error["message"]
    assert shell.run("last")["ended_reason"] == code


def test_what_a_failed_program_wrote_to_standard_error_is_shown(shell: Shell) -> None:
    short = asked(shell, program("echo one >&2; echo two >&2; exit 1"))
    assert short.err.splitlines()[0].endswith("exited with code 1: one")
    assert short.err.splitlines()[1] == "    two"
    long = asked(shell, program("seq -f 'a line of a long log, the one with the number %g' 30 >&2; exit 1"))
    shown = [line for line in long.err.splitlines() if line.startswith("  │ ")]
    assert (shown[0], shown[-1]) == ("  │ … 10 lines before", "  │ a line of a long log, the one with the number 30")


def test_a_program_that_takes_too_long_exits_1_with_its_log(shell: Shell) -> None:
    settings = program("echo working on it >&2; exec sleep 60", "timeout_secs = 4")
    done = asked(shell, settings, "--json")
    error = done.envelope()["error"]
    assert (done.code, error["code"], error.get("log")) == (1, "timed_out", "working on it\n")
    assert "timed out after 4s" in error["message"]


def test_a_program_that_takes_too_long_is_stopped_and_its_log_is_kept(shell: Shell) -> None:
    settings = program("echo working on it >&2; while :; do echo tick; sleep 0.05; done", "timeout_secs = 4")
    done = asked(shell, settings)
    assert done.code != 0
    assert "timed out after 4s; it was stopped" in done.err
    assert "timeout_secs" in done.err
    assert "  working on it" in shell.muster("runs", "show", "last", "--call", "ask").out.splitlines()


def test_a_budget_below_what_a_call_reserves_refuses_it_with_the_numbers(shell: Shell) -> None:
    settings = program("touch was-started", "budget_usd = 0.50")
    done = asked(shell, settings, "--budget", "0.10")
    assert done.code == 1
    for amount in ("$0.00 of $0.10", "$0.50"):
        assert amount in done.err
    assert not (shell.folder / "was-started").exists()


def test_a_program_that_does_not_say_what_it_cost_is_booked_in_full_as_uncertain(shell: Shell) -> None:
    done = asked(shell, program("cat", "budget_usd = 0.50"))
    assert (done.code, done.out) == (0, "hello\n")
    assert "mine · $0.50 ($0.50 uncertain) · " in done.err
    assert shell.run("last")["uncertain_usd"] == 0.5


def test_a_cli_agent_that_asks_for_permission_exits_1_and_the_tool_is_named(shell: Shell) -> None:
    shell.write("asks.sh", """echo '{"request": {"tool_name": "Bash"}}'; exec sleep 60""")
    places = ('output = "jsonl"', 'answer = "$.result"', 'permission = "$.request.tool_name"')
    done = asked(shell, section("cli", 'command = ["sh", "asks.sh"]', *places, "budget_usd = 0"), "--json")
    error = done.envelope()["error"]
    assert (done.code, error["code"], error["tool"]) == (1, "permission", "Bash")
    assert "permission to use Bash" in error["message"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_secret_that_is_passed_on_never_comes_back(shell: Shell, fails: bool) -> None:
    shell.variables["MY_TOKEN"] = SECRET
    settings = program(LEAKS + ("; exit 1" if fails else ""), 'pass_env = ["MY_TOKEN"]')
    seen = [asked(shell, settings), asked(shell, settings, "--json")]
    seen += [shell.muster("runs", "show", "last", *options) for options in (["--call", "ask"], ["--events", "--json"])]
    shell.muster("runs", "export", "last", "-o", "run.json")
    assert [result.code for result in seen] == [int(fails), int(fails), 0, 0]
    assert "[redacted]" in seen[0].out + seen[0].err
    for result in seen:
        assert SECRET not in result.out + result.err
    assert SECRET.encode() not in bytes_of_the_store(shell)
    assert SECRET not in (shell.folder / "run.json").read_text(encoding="utf-8", errors="replace")


def test_a_secret_with_quotes_in_it_never_comes_back_either(shell: Shell) -> None:
    shell.variables["MY_TOKEN"] = AWKWARD
    done = asked(shell, program(LEAKS, 'pass_env = ["MY_TOKEN"]'))
    assert done.out == "the token is [redacted]\n"
    assert b"456789" not in bytes_of_the_store(shell)


def test_a_terminal_does_not_show_a_secret_either(shell: Shell) -> None:
    shell.variables["MY_TOKEN"] = SECRET
    shell.write("muster.toml", program(LEAKS, 'pass_env = ["MY_TOKEN"]'))
    code, shown = on_terminal(shell, "ask", "mine", "hello", "--quiet")
    assert (code, shown) == (0, "the token is [redacted]\r\n")


def test_a_program_gets_nothing_of_our_environment_that_was_not_named(shell: Shell) -> None:
    shell.variables |= {"MY_TOKEN": SECRET, "OTHER": "x"}
    got = asked(shell, program(READ + "env", 'env = { OWN = "o" }')).out.splitlines()
    names = {line.partition("=")[0] for line in got} - {"_", "PWD", "SHLVL", "OLDPWD"}  # which a shell sets by itself
    assert names == {"PATH", "LANG", "OWN", "MUSTER_PROCESS"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (section("program", 'command = ["./not-there"]'), "mine needs the program ./not-there, which was not found"),
        (section("cli", 'command = ["no-such-agent"]', "budget_usd = 0"), "mine needs the program no-such-agent"),
        (section("program"), "its command is empty"),
    ],
)
def test_the_doctor_says_of_a_program_that_it_is_not_there(shell: Shell, settings: str, words: str) -> None:
    shell.write("muster.toml", settings)
    done = shell.muster("doctor")
    assert words in done.out
    assert done.code == 3
