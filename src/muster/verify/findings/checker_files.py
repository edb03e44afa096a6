"""Which files are known to decide what checkers find: their programs, configuration, and lists of what they skip. Pure.

A list of names can never be complete. It keeps such changes off the branch of a repair; whether findings are gone is
decided without it, by `repair_review`.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename, dirname, normpath

from muster.verify.declaration.verification import Kind, Verifier

_NAMES = frozenset((
    "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini",
    "pyrightconfig.json", ".flake8", ".pylintrc", "pylintrc", ".pydocstyle", ".pycodestyle", ".isort.cfg",
    ".style.yapf", ".bandit", "bandit.yaml", "bandit.yml", "pytest.ini", ".pytest.ini", "conftest.py", ".coveragerc",
    "noxfile.py", "sitecustomize.py", "usercustomize.py", ".pre-commit-config.yaml", "package.json", "biome.json",
    "biome.jsonc", "deno.json", "deno.jsonc", ".jshintrc", ".swcrc", "Makefile", "makefile", "GNUmakefile",
    "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml", "clippy.toml", ".clippy.toml", "rustfmt.toml",
    ".rustfmt.toml", "deny.toml", ".rubocop.yml", ".rubocop_todo.yml", "phpcs.xml", "phpcs.xml.dist", "phpstan.neon",
    "psalm.xml", "detekt.yml", "checkstyle.xml", "pmd.xml", ".clang-tidy", ".clang-format", ".shellcheckrc",
    ".hadolint.yaml", ".hadolint.yml", ".yamllint", ".yamllint.yaml", ".yamllint.yml", ".markdownlint.json",
    ".markdownlint.yaml", ".vale.ini", ".editorconfig", ".gitattributes", ".semgrep.yml", "semgrep.yml",
    "semgrep.yaml", ".gitleaks.toml", ".secrets.baseline", "trivy.yaml", "sonar-project.properties", ".swiftlint.yml",
    ".credo.exs", "analysis_options.yaml", "verify.yaml", "verify.yml", "muster.toml",
))  # fmt: skip
_GLOBS = (
    ".*ignore", "*.pth", ".eslintrc*", "eslint.config.*", ".stylelintrc*", "stylelint.config.*", ".prettierrc*",
    "prettier.config.*", "tsconfig*.json", "jsconfig*.json", "jest.config.*", "vitest.config.*", "karma.conf.*",
    ".golangci.*", ".markdownlint-cli2.*", "babel.config.*", ".babelrc*", ".mocharc.*", ".nycrc*", ".oxlintrc*",
)  # fmt: skip
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua|java|Rscript|pwsh|(?:ba|da|z|k|fi)?sh)[0-9.]*(?:\.exe)?"
)
_NO_PROGRAM = ("-m", "-c", "-e")  # options of interpreters after which no file of theirs follows


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFiles:
    """The files of a repository that are known to decide what some checkers find."""

    named: frozenset[str]  # paths that their commands name
    programs: frozenset[str]  # of them, those that are run

    def decides(self, path: str) -> bool:
        """Return whether a file, or what took the place of its folder, decides what is found."""
        return path in self.named or any(one.startswith(f"{path}/") for one in self.named) or self.is_run(path)

    def is_run(self, path: str) -> bool:
        """Return whether a file configures checkers, is one, or lies beside one; it may have findings of its own."""
        name = basename(path)
        if name in _NAMES or any(fnmatchcase(name, glob) for glob in _GLOBS):
            return True
        folders = {dirname(program) for program in self.programs} - {""}
        return path in self.programs or any(path.startswith(f"{folder}/") for folder in folders)


def checker_files(verifiers: Iterable[Verifier], root: str, known: Collection[str]) -> CheckerFiles:
    """Return what is known to decide in a repository that has these files."""
    commands = [one for one in verifiers if one.kind is Kind.COMMAND]
    named = {path for one in commands for path in _named(one, root) if path in known}
    programs = {path for one in commands for path in _programs(one.command, root) if path in known}
    return CheckerFiles(named=frozenset(named | programs), programs=frozenset(programs))


def _named(verifier: Verifier, root: str) -> Iterator[str]:
    """Yield everything in a command and its environment that could be the path of a file below the root."""
    for word in (*verifier.command, *verifier.environment.values()):
        for part in (word, *_words(word)):
            yield _place(part.rpartition("=")[2], root)


def _programs(command: Sequence[str], root: str) -> Iterator[str]:
    """Yield what a command starts: its first word, and what follows an interpreter."""
    words = [part for word in command for part in _words(word)]
    after_interpreter = True
    for word in words:
        if after_interpreter and word.startswith("-"):
            after_interpreter = word not in _NO_PROGRAM
            continue
        if after_interpreter:
            yield _place(word, root)
        after_interpreter = _INTERPRETER.fullmatch(basename(word)) is not None


def _place(path: str, root: str) -> str:
    path = path.removeprefix(f"{root}/")
    return normpath(path) if path else path


def words_of(command: Iterable[str]) -> Sequence[str]:
    """Return the words of a command, with those of the commands for a shell in it."""
    return [*dict.fromkeys(part for word in command for part in (word, *_words(word)))]


def _words(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation mark: it is no command of a shell
        return text.split()
