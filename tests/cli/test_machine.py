"""`muster sim`, `store`, `doctor`, and what all commands share."""

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from muster import __version__
from muster.cli.line.frame import answered
from muster.cli.terminal.output import CommonOptions

from .shell import COMMAND, Shell

CERTIFICATE = Path(__file__).parents[1] / "agents" / "tls" / "localhost.pem"

POLLING = ("--poll-interval", "--deadline")
WAITING = ("--linger", "--poll-interval", "--deadline", "--max-parked")
COMMANDS: dict[str, tuple[str, ...]] = {
    "demo": (),
    "ask": (
        "--system",
        "--budget",
        "--max-tokens",
        "--temperature",
        "--seed",
        "--name",
        "--timeout",
        "--allow-unpriced",
        "--dispatch",
        "--detach",
        "--fallback",
        "--no-cache",
        *WAITING,
    ),
    "runs start": ("--input", "--budget", "--concurrency", "--timeout", "--name", "--dispatch", "--detach", *WAITING),
    "runs list": ("--limit", "--state"),
    "runs show": ("--calls", "--events"),
    "runs watch": (),
    "runs cancel": POLLING,
    "runs resume": ("--budget", "--detach", *WAITING),
    "runs fork": ("--from", "--budget", *WAITING),
    "runs replay": (),
    "runs export": ("--output", "-o"),
    "runs import": (),
    "runs delete": (),
    "batch list": ("--state", "--limit"),
    "batch show": ("--lines",),
    "batch watch": POLLING,
    "batch fetch": POLLING,
    "batch cancel": POLLING,
    "batch reconcile": ("--resubmit", "--grace", *WAITING),
    "batch stats": ("--since",),
    "worker": ("--concurrency", "--until-idle", *WAITING),
    "sim": ("--port", "--latency-ms", "--script", "--faults", "--capacity", "--batch-ms", "--live-counts"),
    "store info": (),
    "store vacuum": (),
    "store copy": (),
    "doctor": (),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_its_options(shell: Shell, command: str) -> None:
    result = shell.muster(*command.split(), "--help")
    assert result.code == 0
    for option in (*COMMANDS[command], "--json", "--quiet", "--home"):
        assert option in result.out


@pytest.mark.parametrize(("columns", "width"), [(60, 60), (0, 80)])
def test_errors_are_wrapped_on_a_terminal_and_nowhere_else(shell: Shell, columns: int, width: int) -> None:
    words = ("run", "nowhere", "--agent", "sim/echo", "--report", "pdf=x", "--home", str(shell.folder / "home"))
    plain = shell.muster(*words).err.splitlines()
    assert (len(plain), len(plain[0]) > width) == (1, True)
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb") as screen:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        done = subprocess.run([*COMMAND, *words], cwd=shell.folder, env=shell.environment, stderr=follower, check=False)
        os.close(follower)
        shown = screen.read1().decode().splitlines()
    assert done.returncode == 2
    assert len(shown) > 1
    assert max(map(len, shown)) <= width
    assert " ".join(line.strip() for line in shown) == plain[0]


@pytest.mark.parametrize(
    ("command", "option"), [("plan", "--detach"), ("runs cancel", "--linger"), ("batch fetch", "--max-parked")]
)
def test_options_that_would_do_nothing_are_not_offered(shell: Shell, command: str, option: str) -> None:
    assert option not in shell.muster(*command.split(), "--help").out


def test_tables_in_a_pipe_are_not_filled_up_with_spaces(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    for words in (["runs", "list"], ["store", "info"]):
        lines = shell.muster(*words).out.splitlines()
        assert len(lines) > 2
        assert [line for line in lines if line.endswith(" ")] == []


def test_the_help_names_every_command(shell: Shell) -> None:
    for arguments in (("--help",), ()):
        result = shell.muster(*arguments)
        assert result.code == 0
        assert all(command.split()[0] in result.out for command in COMMANDS)
    assert shell.muster("--version").out == f"muster {__version__}\n"


@pytest.mark.parametrize("arguments", [("nope",), ("runs", "nope"), ("ask",), ("runs", "show", "--oops", "x")])
def test_a_usage_error_exits_2_and_respects_json(shell: Shell, arguments: tuple[str, ...]) -> None:
    plain = shell.muster(*arguments)
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.startswith("error: ")
    told = shell.muster(*arguments, "--json")
    assert (told.code, told.error()["code"]) == (2, "usage")


def test_the_rehearsal_says_where_it_is_and_ends_on_a_signal(shell: Shell) -> None:
    with shell.start("sim", "--latency-ms", "1", "--capacity", "5") as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        assert set(found) == {"anthropic", "openai", "audit"}
        shell.variables |= {"OPENAI_BASE_URL": found["openai"], "OPENAI_API_KEY": "any"}
        assert shell.muster("ask", "openai/gpt-4o-mini", "hello").out == "hello\n"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(found["audit"]) as answer:
            assert json.loads(answer.read())["calls"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def test_the_rehearsal_answers_by_script_and_tells_a_bad_file(shell: Shell) -> None:
    shell.write("bad.yaml", "rules: [{answer: 5}]")
    result = shell.muster("sim", "--script", "bad.yaml")
    assert (result.code, result.out) == (2, "")
    assert "bad.yaml" in result.err


@pytest.mark.parametrize("option", ["--script", "--faults"])
def test_a_rehearsal_file_that_is_missing_exits_5(shell: Shell, option: str) -> None:
    result = shell.muster("sim", option, "nowhere.yaml")
    assert (result.code, result.err) == (5, "error: no such file: nowhere.yaml\n")


def test_a_port_that_is_taken_exits_2(shell: Shell) -> None:
    with shell.start("sim") as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["audit"].split(":")[2].split("/")[0]
        assert shell.muster("sim", "--port", port).code == 2
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_the_store_tells_about_itself_and_gives_space_back(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "-", "--quiet", stdin="hello " * 50_000)
    shell.muster("runs", "delete", "last")
    info = shell.muster("store", "info", "--json").data()
    assert (info["check"], info["kind"]) == ("ok", "sqlite")
    assert info["free_bytes"] > 0
    shrunk = shell.muster("store", "vacuum", "--json").data()
    assert shrunk["bytes_after"] < shrunk["bytes_before"]
    assert "muster.db" in shell.muster("store", "info").out


@pytest.mark.parametrize("command", [["store", "info"], ["store", "vacuum"]])
def test_where_there_is_no_store_the_commands_about_it_exit_5(shell: Shell, command: list[str]) -> None:
    told = shell.muster(*command, "--home", "nope")
    assert (told.code, told.out) == (5, "")
    assert told.err.startswith(f"error: no store found at nope{os.sep}muster.db\n")


def findings(shell: Shell) -> dict[str, list[tuple[str, str]]]:
    envelope = shell.muster("doctor", "--json").envelope()
    found: dict[str, list[tuple[str, str]]] = {}
    for finding in envelope["data"]["findings"]:
        found.setdefault(finding["subject"], []).append((finding["state"], finding["words"]))
    return found


def test_the_doctor_finds_a_bare_folder_usable(shell: Shell) -> None:
    result = shell.muster("doctor")
    assert result.code == 0
    assert "usable" in result.out
    assert {state for state, _ in findings(shell)["key"]} == {"note"}


def test_the_doctor_names_keys_and_never_shows_them(shell: Shell) -> None:
    shell.variables["ANTHROPIC_API_KEY"] = "sk-very-secret"
    shell.write("muster.toml", '[agents.one]\nkind = "openai"\nmodel = "gpt-4o-mini"\n')
    result = shell.muster("doctor")
    assert result.code == 0
    assert "sk-very-secret" not in result.out + result.err
    assert "ANTHROPIC_API_KEY is set" in result.out
    assert findings(shell)["agent"] == [("note", "one needs a key in OPENAI_API_KEY")]


def test_the_doctor_says_what_it_checked_of_an_agent_and_that_it_did_not_call_it(shell: Shell) -> None:
    shell.variables["MY_KEY"] = "a-key-of-mine"
    program = '[agents.a]\nkind = "program"\ncommand = ["cat"]\n'
    shell.write("muster.toml", program + '[agents.b]\nkind = "openai"\nmodel = "gpt-4o-mini"\nkey_env = "MY_KEY"\n')
    assert findings(shell)["agent"] == [
        ("ok", "a is configured (its program was found, not called)"),
        ("ok", "b is configured (MY_KEY is set, not called)"),
    ]


def test_the_doctor_says_which_proxy_and_certificates_are_used(shell: Shell) -> None:
    plain = shell.muster("doctor").out
    assert "network      no proxy is set; certificates: those of the system, " in plain
    path = shell.folder / "ca.pem"
    path.write_bytes(CERTIFICATE.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        place = f"127.0.0.1:{proxy.getsockname()[1]}"
        shell.variables |= {"HTTPS_PROXY": f"http://me:sesame@{place}", "NO_PROXY": "a.test, b.test"}
        shell.variables["SSL_CERT_FILE"] = str(path)
        told = shell.muster("doctor", "--json")
    network = told.envelope()["data"]["network"]
    assert network["words"] == (
        f"https goes through http://{place} (HTTPS_PROXY), except a.test, b.test; certificates: {path} (SSL_CERT_FILE)"
    )
    assert network["proxies"] == {"https": f"http://{place}", "http": None}
    assert (network["no_proxy"], network["certificates"][0]) == (["a.test", "b.test"], str(path))
    assert "sesame" not in told.out + told.err


def test_the_doctor_finds_a_proxy_that_refuses_connections(shell: Shell) -> None:
    with socket.socket() as unheard:  # bound, so that nobody else takes the port, and not listening
        unheard.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{unheard.getsockname()[1]}"
        shell.variables["HTTPS_PROXY"] = f"http://me:sesame@{place}"
        told = shell.muster("doctor")
    assert (told.code, "usable" in told.out) == (3, False)
    assert f"✗ network      the proxy http://{place} (HTTPS_PROXY) refuses connections" in told.out
    assert "sesame" not in told.out + told.err


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("https_proxy", "http://me:sesame@proxy:x", "https_proxy is not the address of a proxy"),
        ("ALL_PROXY", "socks5://me:sesame@proxy:1080", "ALL_PROXY names a SOCKS proxy, which is not supported"),
        ("SSL_CERT_FILE", "missing.pem", "SSL_CERT_FILE is missing.pem, which cannot be read: No such file"),
        ("SSL_CERT_DIR", "missing", "SSL_CERT_DIR is missing, which cannot be read: No such file"),
    ],
)
def test_the_doctor_finds_proxies_and_certificates_that_cannot_be_used(
    shell: Shell, name: str, value: str, words: str
) -> None:
    shell.variables[name] = value
    told = shell.muster("doctor", "--json")
    assert (told.code, told.error()["code"]) == (3, "configuration")
    assert words in told.error()["message"]
    assert told.envelope()["data"]["usable"] is False
    assert "sesame" not in told.out + told.err


def test_the_doctor_finds_agents_that_cannot_be_asked(shell: Shell) -> None:
    shell.write(
        "muster.toml",
        '[agents.free]\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
        'price = { input = 0, output = 0 }\n[agents.dear]\nkind = "anthropic"\nmodel = "no-such-model"\n',
    )
    assert shell.muster("doctor").code == 3
    states = [state for state, _ in findings(shell)["agent"]]
    assert states == ["broken", "ok"]


@pytest.mark.parametrize(
    "text", ["[agents.x]\nkind = oops\n", '[workloads]\nimport = ["no_such_module"]\n', "[budget]\nrun_usd = -1\n"]
)
def test_the_doctor_exits_3_on_a_broken_configuration(shell: Shell, text: str) -> None:
    shell.write("muster.toml", text)
    result = shell.muster("doctor", "--json")
    assert (result.code, result.error()["code"]) == (3, "configuration")


def test_the_doctor_finds_a_home_that_cannot_be_written(shell: Shell) -> None:
    shell.write("file", "")
    assert shell.muster("doctor", "--home", "file/home").code == 3


def test_the_doctor_finds_a_store_that_is_none(shell: Shell) -> None:
    (shell.folder / ".muster").mkdir()
    shell.write(".muster/muster.db", "this is not a database, and long enough to be told from one" * 20)
    assert shell.muster("doctor").code == 3
    assert shell.muster("runs", "list").code == 4


@pytest.fixture
def signals_kept() -> "object":
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("signals_kept")
def test_the_unexpected_exits_4_and_is_named_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def raising(error: BaseException) -> Callable[[], int]:
        def work() -> int:
            raise error

        return work

    assert answered(CommonOptions(command="x"), raising(KeyError("surprise"))) == 4
    told = capsys.readouterr().err
    assert "KeyError" in told
    assert "report" in told
    assert answered(CommonOptions(command="x"), raising(KeyboardInterrupt())) == 4
