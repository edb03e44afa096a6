"""Which files decide what checkers find: their programs, their configuration, and lists of what they skip. Pure.

A repair that changes one of them may have changed the verdict instead of the code. Names are those of common tools; a
list can never be complete, so a program of the repository's own is found by the command of its agent.
"""

import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import basename, dirname, normpath

from muster.verify.verification import Kind, Verifier

CACHE = "__pycache__"
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

# Comments and marks with which code asks a checker, or a run of tests, to overlook it.
_SILENCING = re.compile(
    r"\bnoqa\b|type:\s*ignore|pyright:\s*ignore|mypy:\s*(?:ignore|disable)|pylint:\s*(?:disable|skip)|ruff:\s*(?:noqa|disable)"
    r"|\bnosec\b|pragma:\s*no\s*cover|\bnosemgrep\b|eslint-disable|@ts-(?:ignore|nocheck|expect-error)|biome-ignore"
    r"|stylelint-disable|istanbul ignore|[/#]\s*nolint\b|\bNOLINT|#!?\[allow\(|@SuppressWarnings|rubocop:disable"
    r"|shellcheck disable|gitleaks:allow|pragma:\s*allowlist|yamllint disable|mark\.(?:skip|xfail)|pytest\.skip\("
    r"|@unittest\.skip|\b(?:it|describe|test)\.skip\(|\bt\.Skip\(",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFiles:
    """The files of a repository that decide what some checkers find."""

    programs: frozenset[str]  # paths that their commands name, and the modules that they run
    folders: frozenset[str]  # of programs, which import what lies beside them

    def decides(self, path: str) -> bool:
        """Return whether a file, or what took the place of its folder, decides what is found."""
        name = basename(path)
        if CACHE in path.split("/"):  # written by whoever imports a module; it is removed before a verification
            return False
        if name in _NAMES or any(fnmatchcase(name, glob) for glob in _GLOBS):
            return True
        if path in self.programs or any(one.startswith(f"{path}/") for one in self.programs):
            return True
        return any(path.startswith(f"{folder}/") for folder in self.folders) or _shadows(path)


def checker_files(
    verifiers: Iterable[Verifier], root: str, known: Collection[str], verified: Collection[str]
) -> CheckerFiles:
    """Return what decides in a repository with known files; a folder with verified files is no folder of a program."""
    commands = [one for one in verifiers if one.kind is Kind.COMMAND]
    named = {path for one in commands for path in _named(one, root)}
    programs = {path for path in named if path in known}
    folders = {dirname(path) for path in programs} - {""}
    folders = {one for one in folders if not any(path.startswith(f"{one}/") for path in verified)}
    modules = {path for one in commands for path in _modules(one.command)}
    return CheckerFiles(programs=frozenset(programs | modules), folders=frozenset(folders))


def silenced(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that ask more often than before to be overlooked by a checker."""
    return tuple(sorted(path for path, text in after.items() if _asks(text) > _asks(before.get(path, ""))))


def _asks(text: str) -> int:
    return sum(1 for _ in _SILENCING.finditer(text))


def _named(verifier: Verifier, root: str) -> Iterator[str]:
    """Yield everything in a command and its environment that could be the path of a file below the root."""
    for word in (*verifier.command, *verifier.environment.values()):
        for part in (word, *_words(word)):
            path = part.rpartition("=")[2].removeprefix(f"{root}/")
            yield normpath(path) if path else path


def _words(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation mark: it is no command of a shell
        return text.split()


def _modules(command: Sequence[str]) -> Iterator[str]:
    """Yield the files that a module would be run from, if the repository had it."""
    words = [part for word in command for part in _words(word)]
    for option, module in pairwise(words):
        if option == "-m":
            parts = module.split(".")
            for depth in range(1, len(parts) + 1):
                place = "/".join(parts[:depth])
                yield from (f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py")


def _shadows(path: str) -> bool:
    """Return whether a file at the top has the name of a module of Python's own, which programs there would import."""
    module = path.removesuffix("/__init__.py").removesuffix(".py")
    return path.endswith(".py") and module in sys.stdlib_module_names
