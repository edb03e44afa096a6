"""What the README tells a user is true: its program runs, its commands exist, what is made from the code is fresh."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import forkserver

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BARE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


CONTENTS = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
BATCHES = (ROOT / "docs" / "BATCHES.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**BARE, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


def run_muster(folder: Path, *words: str) -> str:
    environment = {**BARE, "HOME": str(folder)}
    done = forkserver.run("muster", words, folder=folder, environment=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_program_in_the_readme_runs(tmp_path: Path) -> None:
    (program,) = blocks("python")
    (tmp_path / "program.py").write_text(program)
    done = run(tmp_path, sys.executable, "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{'labels': ['a', 'b']}"
    assert "1 run.created" in done.stdout


def test_the_commands_that_need_no_key_run_as_they_are_written(tmp_path: Path) -> None:
    for line in ('ask sim/echo "hello"', "runs list", "runs show last"):
        assert f"muster {line}" in README
        words = [word.strip('"') for word in line.split()]
        run_muster(tmp_path, *words)


def commands() -> list[list[str]]:
    lines = [line.split("#")[0].split() for block in blocks("sh", README + BATCHES) for line in block.splitlines()]
    return [line for line in lines if line[:1] == ["muster"]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_and_option_of_the_readme_exists(tmp_path: Path, words: list[str]) -> None:
    group = 3 if words[1] in ("runs", "store") else 2
    told = run_muster(tmp_path, *words[1:group], "--help")
    for option in (word for word in words if word.startswith("--")):
        assert option in told


def test_the_configuration_in_the_readme_is_taken(tmp_path: Path) -> None:
    from muster.settings import load_settings

    (text,) = blocks("toml")
    (tmp_path / "muster.toml").write_text(text)
    settings = load_settings(folder=tmp_path, environment={})
    assert (set(settings.agents), settings.run_cap, settings.day_cap) == ({"local"}, 5_000_000, 20_000_000)


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make (\w+)", README)) - {"and"}
    assert {"demo", "test", "check", "chaos", "bench", "docs"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_what_is_made_from_the_code_is_fresh() -> None:
    done = subprocess.run([sys.executable, "-m", "docs.build", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 200
    for folder, text in ((ROOT, README), (ROOT / "docs", CONTENTS)):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / target).exists(), target


def test_the_table_of_contents_names_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([^)/]+)\)", CONTENTS))


def test_the_picture_of_the_terminal_loads_nothing() -> None:
    drawing = (ROOT / "docs" / "images" / "run.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", drawing)) <= {"http://www.w3.org/2000/svg"}
    assert "url(http" not in drawing
