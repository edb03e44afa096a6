"""Which files are known to decide what checkers find."""

import pytest

from muster.verify.declaration.verification import Kind, Verifier
from muster.verify.findings.checker_files import checker_files

KNOWN = (
    "pyproject.toml",
    "tools/lint.py",
    "tools/rules/words.py",
    "check.sh",
    "src/app.py",
    "src/check.py",
    "README.md",
)
ROOT = "/work/shop"


def command(*words: str, **environment: str) -> Verifier:
    return Verifier(name="lint", kind=Kind.COMMAND, command=words, parser="json", environment=environment)


LINT = command("python", "tools/lint.py", "{files}")
RUFF = command("python", "-m", "ruff", "check", "{files}")


@pytest.mark.parametrize(
    ("verifier", "path"),
    [
        (RUFF, "pyproject.toml"),
        (RUFF, "ruff.toml"),
        (RUFF, "src/deep/.ruff.toml"),
        (RUFF, ".gitignore"),
        (RUFF, "src/.semgrepignore"),
        (RUFF, "verify.yaml"),
        (RUFF, ".gitattributes"),
        (RUFF, "tests/conftest.py"),
        (RUFF, "sitecustomize.py"),
        (RUFF, "lib/more.pth"),
        (LINT, "tools/lint.py"),
        (LINT, "tools/rules/words.py"),
        (LINT, "tools/tomllib.py"),
        (LINT, "tools"),
        (command("python", f"{ROOT}/tools/lint.py"), "tools/lint.py"),
        (command("sh", "-c", "python tools/lint.py $@ || exit 1"), "tools/lint.py"),
        (command("./check.sh"), "check.sh"),
        (command("python", "src/check.py"), "src/check.py"),
        (command("python", "src/check.py"), "src/app.py"),  # it lies beside the program, which may import it
        (command("ruff", "--config=README.md"), "README.md"),
        (command("ruff", RUFF_CONFIG="README.md"), "README.md"),
        (command("npx", "eslint"), "web/eslint.config.mjs"),
        (command("make", "lint"), "Makefile"),
    ],
)
def test_programs_configurations_and_lists_of_what_is_skipped_decide(verifier: Verifier, path: str) -> None:
    assert checker_files([verifier], ROOT, KNOWN).decides(path)


@pytest.mark.parametrize(
    ("verifier", "path"),
    [
        (RUFF, "src/app.py"),
        (RUFF, "docs/ruff.md"),
        (RUFF, "src/json.py"),
        (LINT, "src/check.py"),
        (Verifier(name="reader", prompt="Read tools/lint.py"), "tools/lint.py"),
    ],
)
def test_other_files_do_not(verifier: Verifier, path: str) -> None:
    assert not checker_files([verifier], ROOT, KNOWN).decides(path)


@pytest.mark.parametrize(
    ("verifier", "path", "run"),
    [
        (command("ruff", "check", "src/app.py"), "src/app.py", False),
        (command("python", "-m", "ruff", "check", "src/app.py"), "src/app.py", False),
        (command("python", "-B", "tools/lint.py", "src/app.py"), "src/app.py", False),
        (command("python", "-B", "tools/lint.py", "src/app.py"), "tools/lint.py", True),
        (command("python", "-B", "tools/lint.py", "src/app.py"), "tools/rules/words.py", True),
        (command("/usr/bin/python3.11", f"{ROOT}/src/check.py"), "src/check.py", True),
        (command("sh", "-c", "python tools/lint.py $@ || exit 1"), "tools/lint.py", True),
        (command("./check.sh", "src/app.py"), "check.sh", True),
        (command("./check.sh", "src/app.py"), "src/app.py", False),
        (command("ruff", "check", "pyproject.toml"), "pyproject.toml", True),
    ],
)
def test_a_file_that_a_command_names_to_be_checked_is_not_run(verifier: Verifier, path: str, run: bool) -> None:
    assert checker_files([verifier], ROOT, KNOWN).is_run(path) is run
