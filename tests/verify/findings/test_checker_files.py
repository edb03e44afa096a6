"""Which files decide what checkers find, and which comments ask them to overlook code."""

import pytest

from muster.verify.findings.checker_files import checker_files, silenced
from muster.verify.verification import Kind, Verifier

KNOWN = (
    "pyproject.toml",
    "tools/lint.py",
    "tools/rules/words.py",
    "check.sh",
    "src/app.py",
    "src/check.py",
    "README.md",
)
VERIFIED = ("src/app.py", "src/check.py")
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
        (RUFF, "ruff.py"),
        (RUFF, "ruff/__main__.py"),
        (RUFF, "json.py"),
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
        (command("ruff", "--config=README.md"), "README.md"),
        (command("ruff", RUFF_CONFIG="README.md"), "README.md"),
        (command("npx", "eslint"), "web/eslint.config.mjs"),
        (command("make", "lint"), "Makefile"),
    ],
)
def test_programs_configurations_and_lists_of_what_is_skipped_decide(verifier: Verifier, path: str) -> None:
    assert checker_files([verifier], ROOT, KNOWN, VERIFIED).decides(path)


@pytest.mark.parametrize(
    ("verifier", "path"),
    [
        (RUFF, "src/app.py"),
        (RUFF, "docs/ruff.md"),
        (RUFF, "src/json.py"),
        (LINT, "src/check.py"),
        (LINT, "tools/__pycache__/lint.cpython-311.pyc"),
        (command("python", "src/check.py"), "src/app.py"),  # the folder of the program is verified itself
        (Verifier(name="reader", prompt="Read tools/lint.py"), "tools/lint.py"),
    ],
)
def test_other_files_do_not(verifier: Verifier, path: str) -> None:
    assert not checker_files([verifier], ROOT, KNOWN, VERIFIED).decides(path)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa: F401",
        "x: int = ''  # type: ignore[assignment]",
        "# ruff: noqa",
        "# pylint: disable=all",
        "subprocess.run(x)  # nosec",
        "/* eslint-disable */",
        "// @ts-nocheck",
        "//nolint:errcheck",
        "#[allow(dead_code)]",
        "@pytest.mark.skip",
        "# shellcheck disable=SC2086",
    ],
)
def test_a_file_that_asks_more_often_to_be_overlooked_is_named(line: str) -> None:
    before = {"a.py": "x = 1\n", "b.py": f"{line}\n"}
    assert silenced(before, {"a.py": f"{line}\n", "b.py": f"{line}\ny = 2\n", "new.py": "z = 3\n"}) == ("a.py",)
