"""SARIF 2.1.0. An error is high, a warning medium, a note low; a `security-severity` says it better where there is one.

What was suppressed, what passed and what is gone since a baseline are no findings. A run without a list of results did
not check anything.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.checks.findings.wording import LONGEST_NAME, bounded
from muster.checks.tool_output.parsed import Parsed, flawed
from muster.checks.tool_output.sarif_rules import Rules, cwe_in, score_in
from muster.checks.tool_output.sarif_uri import path_of
from muster.domain.canonical import Json
from muster.domain.finding import Finding, Severity
from muster.shapes.strict_json import decode

_LEVELS = {"error": Severity.HIGH, "warning": Severity.MEDIUM, "note": Severity.LOW, "none": Severity.LOW}
_NO_FINDING = ("pass", "notApplicable", "informational")
_SCORES = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MEDIUM))


class _Unfit(ValueError):
    """It is no SARIF that can be read."""


def parse(stdout: str, stderr: str, exit_code: int) -> Parsed:
    """Read the results of all runs of a log."""
    try:
        return Parsed(findings=tuple(_findings(decode(stdout))))
    except _Unfit as error:
        return flawed(str(error))
    except (ValueError, RecursionError):
        return flawed("it is not JSON", stdout)
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        return flawed(f"it is not the JSON of SARIF: {error}"[:200])


def _findings(log: Json) -> Iterator[Finding]:
    if not isinstance(log, dict) or log.get("version") != "2.1.0":
        raise _Unfit("it is no SARIF of version 2.1.0")
    if not log.get("runs"):
        raise _Unfit("it holds no run")
    for run in log["runs"]:
        yield from _of_run(run)


def _of_run(run: Mapping[str, Json]) -> Iterator[Finding]:
    if any(one.get("executionSuccessful") is False for one in run.get("invocations") or ()):
        raise _Unfit("it says that its run did not succeed")
    if not isinstance(run.get("results"), list):
        raise _Unfit("a run has no results: it checked nothing")
    rules, bases = Rules(run), run.get("originalUriBaseIds") or {}
    for result in run["results"]:
        if _counts(result):
            yield _finding(result, rules, bases)


def _counts(result: Mapping[str, Json]) -> bool:
    if result.get("kind", "fail") in _NO_FINDING or result.get("baselineState") == "absent":
        return False
    suppressed = [one.get("status", "accepted") for one in result.get("suppressions") or ()]
    return not suppressed or any(status != "accepted" for status in suppressed)


def _finding(result: Mapping[str, Json], rules: Rules, bases: Mapping[str, Json]) -> Finding:
    rule = rules.of(result)
    first: Mapping[str, Any] = next(iter(result.get("locations") or ()), {})
    location = first.get("physicalLocation") or {}
    line, end = _lines(location.get("region") or {})
    name = str(result.get("ruleId") or rule.get("id") or "")
    return Finding(
        file=path_of(location.get("artifactLocation") or {}, bases),
        line=line,
        end_line=end,
        severity=_severity(result, rule),
        finding=bounded(rules.message(result, rule) or name or "it says nothing"),
        fix=_fix(result),
        cwe=cwe_in(result, rule),
        rule=bounded(name, LONGEST_NAME),
    )


def _lines(region: Mapping[str, Json]) -> tuple[int, int]:
    line = _whole(region.get("startLine", 0))
    end = _whole(region.get("endLine", line))
    if region.get("endColumn") == 1 and end > line:  # it ends before the first character of that line
        end -= 1
    return line, max(line, end)


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise _Unfit("a line of a result is no whole number")
    return value


def _severity(result: Mapping[str, Json], rule: Mapping[str, Json]) -> Severity:
    score = score_in(result, rule)
    if score is not None:
        return next((severity for least, severity in _SCORES if score >= least), Severity.LOW)
    usual = (rule.get("defaultConfiguration") or {}).get("level", "warning")
    level = str(result.get("level", usual))
    if level not in _LEVELS:
        raise _Unfit(f"{level[:40]!r} is no level")
    return _LEVELS[level]


def _fix(result: Mapping[str, Json]) -> str:
    fix: Mapping[str, Any] = next(iter(result.get("fixes") or ()), {})
    return bounded(str((fix.get("description") or {}).get("text") or ""))
