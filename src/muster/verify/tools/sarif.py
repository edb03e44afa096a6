"""SARIF 2.1.0. An error is high, a warning medium, a note low; a `security-severity` says it better where there is one.

What was suppressed, what passed and what is gone since a baseline are no findings. A run without a list of results did
not check anything.
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from muster.domain.canonical import Json
from muster.text.json_documents import decode
from muster.verify.findings.answers import MAX_NAME, FindingsAnswer, bounded, cwe_of
from muster.verify.findings.finding import Finding, Severity
from muster.verify.tools.lines import flawed

_CWE_TAG = re.compile(r"(?:external/cwe/)?(cwe-\d{1,9})", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(\d{1,3})\}")


class Rules:
    """Finds the rule of a result, by its place or its name."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        driver = (run.get("tool") or {}).get("driver") or {}
        self._rules: list[Mapping[str, Json]] = list(driver.get("rules") or ())
        self._named = {str(rule.get("id")): rule for rule in self._rules}

    def of(self, result: Mapping[str, Any]) -> Mapping[str, Json]:
        """Return the rule of a result, or nothing when it is not described."""
        place = result.get("ruleIndex", (result.get("rule") or {}).get("index", -1))
        if type(place) is int and 0 <= place < len(self._rules):
            return self._rules[place]
        return self._named.get(str(result.get("ruleId") or (result.get("rule") or {}).get("id")), {})

    def message(self, result: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
        """Return what a result says: its own words, or those of its rule with what belongs in them."""
        message = result.get("message") or {}
        strings = rule.get("messageStrings") or {}
        text = message.get("text") or (strings.get(str(message.get("id"))) or {}).get("text")
        if not text:
            text = (rule.get("shortDescription") or {}).get("text") or ""
        values = [str(value) for value in message.get("arguments") or ()]
        return _PLACEHOLDER.sub(lambda found: _filled(found, values), str(text)) if values else str(text)


def _filled(found: re.Match[str], values: list[str]) -> str:
    place = int(found[1])
    return values[place] if place < len(values) else found[0]


def score_in(result: Mapping[str, Json], rule: Mapping[str, Json]) -> float | None:
    """Return the security severity, from 0 to 10, where one is said."""
    for properties in _properties(result, rule):
        try:
            score = float(properties["security-severity"])
        except (KeyError, TypeError, ValueError):
            continue
        if isfinite(score):
            return score
    return None


def cwe_in(result: Mapping[str, Json], rule: Mapping[str, Json]) -> str:
    """Return the first weakness that the tags name."""
    tags = (str(tag) for properties in _properties(result, rule) for tag in properties.get("tags") or ())
    found = (_CWE_TAG.fullmatch(tag) for tag in tags)
    return next((cwe_of(one[1]) for one in found if one is not None), "")


def _properties(*holders: Mapping[str, Json]) -> Iterator[Mapping[str, Any]]:
    for holder in holders:
        properties = holder.get("properties")
        if isinstance(properties, Mapping):
            yield properties


_LEVELS = {"error": Severity.HIGH, "warning": Severity.MEDIUM, "note": Severity.LOW, "none": Severity.LOW}
_NO_FINDING = ("pass", "notApplicable", "informational")
_SCORES = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MEDIUM))


class _Unfit(ValueError):
    """It is no SARIF that can be read."""


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read the results of all runs of a log."""
    try:
        return FindingsAnswer(findings=tuple(_findings(decode(stdout))))
    except _Unfit as error:
        return flawed(str(error))
    except (ValueError, RecursionError):
        return flawed("it is not JSON", stdout)
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        return flawed(f"it is not valid SARIF: {error}"[:200])


def _findings(log: Json) -> Iterator[Finding]:
    if not isinstance(log, dict) or log.get("version") != "2.1.0":
        raise _Unfit("it is not SARIF 2.1.0")
    if not log.get("runs"):
        raise _Unfit("it contains no run")
    for run in log["runs"]:
        yield from _of_run(run)


def _of_run(run: Mapping[str, Any]) -> Iterator[Finding]:
    if any(one.get("executionSuccessful") is False for one in run.get("invocations") or ()):
        raise _Unfit("it reports that its run failed")
    if not isinstance(run.get("results"), list):
        raise _Unfit("a run has no results: it checked nothing")
    rules, bases = Rules(run), run.get("originalUriBaseIds") or {}
    for result in run["results"]:
        if _counts(result):
            yield _finding(result, rules, bases)


def _counts(result: Mapping[str, Any]) -> bool:
    if result.get("kind", "fail") in _NO_FINDING or result.get("baselineState") == "absent":
        return False
    suppressed = [one.get("status", "accepted") for one in result.get("suppressions") or ()]
    return not suppressed or any(status != "accepted" for status in suppressed)


def _finding(result: Mapping[str, Any], rules: Rules, bases: Mapping[str, Json]) -> Finding:
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
        rule=bounded(name, MAX_NAME),
    )


def _lines(region: Mapping[str, Json]) -> tuple[int, int]:
    line = _whole(region.get("startLine", 0))
    end = _whole(region.get("endLine", line))
    if region.get("endColumn") == 1 and end > line:  # it ends before the first character of that line
        end -= 1
    return line, max(line, end)


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise _Unfit("a line of a result is not an integer")
    return value


def _severity(result: Mapping[str, Json], rule: Mapping[str, Any]) -> Severity:
    score = score_in(result, rule)
    if score is not None:
        return next((severity for least, severity in _SCORES if score >= least), Severity.LOW)
    usual = (rule.get("defaultConfiguration") or {}).get("level", "warning")
    level = str(result.get("level", usual))
    if level not in _LEVELS:
        raise _Unfit(f"{level[:40]!r} is not a level")
    return _LEVELS[level]


def _fix(result: Mapping[str, Any]) -> str:
    fix: Mapping[str, Any] = next(iter(result.get("fixes") or ()), {})
    return bounded(str((fix.get("description") or {}).get("text") or ""))


_MAX_DEPTH = 10  # bases on bases


def path_of(location: Mapping[str, Json], bases: Mapping[str, Json]) -> str:
    """Return the path of a file; one that is not told, or is somewhere else than on this disk, is empty."""
    uri = str(location.get("uri") or "")
    if not uri:
        return ""
    try:
        uri = _below(uri, str(location.get("uriBaseId") or ""), bases)
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme not in ("", "file"):
        return ""
    return unquote(parts.path if parts.scheme else uri.partition("#")[0])


def _below(uri: str, name: str, bases: Mapping[str, Json]) -> str:
    """Put an address below its base; a base that has no address of its own is the root."""
    for _ in range(_MAX_DEPTH):
        base = bases.get(name)
        if not isinstance(base, Mapping) or urlsplit(uri).scheme:
            break
        if base.get("uri"):
            uri = urljoin(str(base["uri"]), uri)
        name = str(base.get("uriBaseId") or "")
    return uri
