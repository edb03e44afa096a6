"""Lines with which code asks checkers or runs of tests to overlook it. Pure.

What was there before counts for nothing: a line that was added or changed is looked at, wherever it came from.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from muster.git.branch_changes import LineChanges

# Directives of checkers, in any language.
_DIRECTIVES = (
    r"\bnoqa\b|\btype:\s*ignore|#\s*(?:mypy|pyright|pylint|ruff|flake8|pytype|pyre|isort|yapf|fmt|autopep8|bandit)\s*:"
    r"|\bpyre-(?:ignore|fixme)|\bnosec\b|#\s*pragma\s*:|#\s*pragma\s+(?:GCC|clang|warning)|\bnosemgrep\b"
    r"|\bno_type_check\b|\bnoinspection\b|@ts-(?:ignore|nocheck|expect-error)|\b(?:biome|deno-lint)-ignore"
    r"|\b(?:eslint|stylelint|oxlint|tslint|jshint|standard)[-:](?:disable|enable|ignore)"
    r"|/\*\s*(?:eslint|jshint|jslint|globals?|exported)\b|\b(?:istanbul|c8|v8) ignore|[/#]\s*nolint\b|//\s*lint:"
    r"|\bNOLINT|#!?\[(?:allow|expect|ignore)\b|@Suppress|SuppressMessage|\bNOSONAR\b|\bNOPMD\b|CHECKSTYLE[: ]*O(?:FF|N)"
    r"|\b(?:rubocop|swiftlint|ktlint|detekt|phpcs)\s*:\s*(?:disable|enable|ignore|todo)"
    r"|@(?:phpstan-ignore|psalm-suppress)|shellcheck\s+disable|hadolint\s+ignore|\blgtm\s*\["
    r"|\b(?:yamllint|markdownlint)[- ](?:disable|enable)"
    r"|\b(?:checkov|tfsec|trivy|kics|gitleaks|codespell|tflint)[-: ](?:skip|ignore|allow)"
)
# Marks with which a test is left out.
_LEFT_OUT = (
    r"\bmark\.(?:skip|xfail)|\bpytest\.(?:skip|xfail|exit)\b|\bimportorskip\b|\bskip(?:If|Unless|Test)\s*\("
    r"|(?<![.\w])skip\s*\(|\bSkipTest\b|\bunittest\.skip|\bexpectedFailure\b|\bxfail\b|__test__|\bcollect_ignore"
    r"|\bpytest_(?:collection|ignore)|\b(?:it|describe|test|context|suite)\.(?:skip|only|todo|failing|fails)\b"
    r"|(?<![.\w])(?:x(?:it|test|describe)|fdescribe)\s*\(|\bt\.Skip(?:Now|f)?\s*\(|@(?:Disabled|Ignore)\b"
)
_SUPPRESSING = re.compile(f"{_DIRECTIVES}|{_LEFT_OUT}", re.IGNORECASE)
_DEFINED = re.compile(r"(?P<indent>\s*)(?:(?:async\s+)?def|class)\s+(?P<name>\w+)")


def suppressed(changes: Mapping[str, LineChanges]) -> Iterator[str]:
    """Yield the files in which a line that was added or changed asks to be overlooked."""
    return (path for path, one in changes.items() if any(_SUPPRESSING.search(line) for line in one.added))


def lost_tests(failed: Iterable[str], changes: Mapping[str, LineChanges]) -> Iterator[str]:
    """Yield the failed tests, called as pytest does, that were renamed, removed or replaced instead of repaired."""
    for test in failed:
        file, *names = test.partition("[")[0].split("::")
        if file in changes and names and _is_lost(changes[file], names):
            yield test


def _is_lost(changes: LineChanges, names: Collection[str]) -> bool:
    """Return whether a definition is gone from its place, or another line meddles with what it defined."""
    gone = _definitions(changes.removed) - _definitions(changes.added)
    mentions = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    meddling = (line for line in changes.added if mentions.search(line) and not _DEFINED.match(line))
    return any(name in names for _, name in gone) or any(meddling)


def _definitions(lines: Iterable[str]) -> set[tuple[int, str]]:
    found = (_DEFINED.match(line) for line in lines)
    return {(len(one["indent"].expandtabs()), one["name"]) for one in found if one is not None}
