"""Completion in real shells: bash, zsh and fish are asked what they offer, in a folder with runs and agents."""

import os
import pty
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forkserver

from .shell import Shell

SECONDS = 200
LIMIT = 200

Offers = Callable[[str], set[str]]


@pytest.fixture
def folder(shell: Shell, tmp_path: Path) -> Path:
    """A folder with two runs, an agent, and `muster` on the path."""
    (tmp_path / "muster.toml").write_text('[agents.mine]\nkind = "scripted"\n')
    for name in ("first-run", "second-run"):
        shell.muster("ask", "sim/echo", "hello", "--name", name)
    forkserver.install(tmp_path / "bin")
    return tmp_path


def variables(shell: Shell, folder: Path) -> dict[str, str]:
    return {**shell.environment, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}


def run_shell(words: list[str], shell: Shell, folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=variables(shell, folder), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_bash(shell: Shell, folder: Path) -> Offers:
    """Call the function that `complete` has registered, as readline does."""

    def offers(line: str) -> set[str]:
        script = f"""
            eval "$(muster completion bash)"
            COMP_LINE={line!r}
            read -ra COMP_WORDS <<< "$COMP_LINE"
            [[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
            COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
            COMP_POINT=${{#COMP_LINE}}
            compopt() {{ :; }}  # which is allowed inside of readline only
            registered=$(complete -p muster)
            function=$(sed -n 's/.*-F \\([^ ]*\\) .*/\\1/p' <<< "$registered")
            "$function" muster "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        return set(run_shell(["bash", "--norc", "-c", textwrap.dedent(script)], shell, folder).split("\n")) - {""}

    return offers


def in_fish(shell: Shell, folder: Path) -> Offers:
    """Ask fish itself, which completes a line without a terminal."""

    def offers(line: str) -> set[str]:
        script = f"muster completion fish | source; complete --do-complete {line!r}"
        found = run_shell(["fish", "--no-config", "--command", script], shell, folder)
        return {row.partition("\t")[0] for row in found.split("\n") if row}

    return offers


def in_zsh(shell: Shell, folder: Path) -> Offers:
    """Let zsh complete inside of a terminal, the only place where it does; every match that it adds is printed."""

    def offers(line: str) -> set[str]:
        (folder / ".zshrc").write_text(
            textwrap.dedent("""
            PS1='ready> '
            autoload -Uz compinit && compinit -u -d "$ZDOTDIR/.zcompdump"
            eval "$(muster completion zsh)"
            compadd() {
                local -a added
                builtin compadd -O added "$@"
                (( ${#added} )) && printf 'OFFER %s\\n' "${added[@]}" >> "$ZDOTDIR/offers"
                builtin compadd "$@"
            }
            finish() { print -n > "$ZDOTDIR/done"; exit }
            complete-and-leave() { zle complete-word; finish }
            zle -N complete-and-leave
            bindkey '^I' complete-and-leave
            """)
        )
        (folder / "offers").unlink(missing_ok=True)
        (folder / "offers").touch()
        in_terminal(["zsh", "-i"], line, variables(shell, folder) | {"ZDOTDIR": str(folder)}, folder)
        return set(re.findall(r"^OFFER (.*)$", (folder / "offers").read_text(), re.MULTILINE))

    return offers


def in_terminal(words: list[str], line: str, environment: dict[str, str], folder: Path) -> None:
    """Start a shell in a terminal, wait for its prompt, type a line and the tab key, and wait for its end."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
    )
    os.close(follower)
    seen, typed = b"", False
    try:
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # the shell has left, and its terminal with it
                break
            if not piece:
                break
            seen += piece
            if not typed and b"ready> " in seen:
                os.write(leader, line.encode() + b"\t")
                typed = True
    finally:
        os.close(leader)
        assert process.wait(timeout=SECONDS) is not None
    assert typed, seen.decode(errors="replace")


SHELLS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


@pytest.fixture(params=sorted(SHELLS))
def offers(request: pytest.FixtureRequest, shell: Shell, folder: Path) -> Offers:
    name = str(request.param)
    assert shutil.which(name), f"{name} is missing; `make test` installs it (Debian package {name})"
    return SHELLS[name](shell, folder)


def test_commands_options_choices_runs_and_agents_are_offered(offers: Offers) -> None:
    assert {"run", "runs"} == offers("muster ru")
    assert {"show", "list", "resume"} <= offers("muster runs ")
    assert {"--calls", "--call"} == offers("muster runs show --call")
    assert {"live", "flex", "batch"} == offers("muster ask sim/echo hello --dispatch ")
    assert {"first-run", "second-run", "last"} <= offers("muster runs show ")
    assert {"second-run"} == offers("muster runs resume sec")
    assert {"mine"} == offers("muster ask mi")
    assert {"plan", "metrics"} <= offers("muster verify ")
    assert {"show", "start"} == offers("muster help runs s")
    assert offers("muster help ask sh") == set()


@pytest.mark.parametrize("broken", ["no store", "not a store", "bad settings"])
def test_what_cannot_be_read_offers_nothing_and_makes_nothing(shell: Shell, folder: Path, broken: str) -> None:
    home = folder / ".muster"
    shutil.rmtree(home)
    if broken == "not a store":
        home.mkdir()
        (home / "muster.db").write_text("this is not a store")
    if broken == "bad settings":
        (folder / "muster.toml").write_text("[agents.mine]\nkind = 7\n")
    done = subprocess.run(
        [str(folder / "bin/muster")],
        cwd=folder,
        env=variables(shell, folder)
        | {"_MUSTER_COMPLETE": "bash_complete", "COMP_WORDS": "muster runs show ", "COMP_CWORD": "3"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert home.exists() == (broken == "not a store")


def test_a_shell_that_is_not_known_is_refused_with_those_that_are(shell: Shell) -> None:
    refused = shell.muster("completion", "tcsh", "--json")
    assert refused.code == 2
    assert refused.error()["message"] == "SHELL must be one of bash, zsh, fish, not 'tcsh'"
