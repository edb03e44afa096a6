"""The rules of a SARIF run: what they are called, how bad they are, and what their results say."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from muster.checks.findings.wording import cwe_of
from muster.domain.canonical import Json

_CWE_TAG = re.compile(r"(?:external/cwe/)?(cwe-\d{1,9})", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(\d{1,3})\}")


class Rules:
    """Finds the rule of a result, by its place or its name."""

    def __init__(self, run: Mapping[str, Json]) -> None:
        driver = (run.get("tool") or {}).get("driver") or {}
        self._rules: list[Mapping[str, Json]] = list(driver.get("rules") or ())
        self._named = {str(rule.get("id")): rule for rule in self._rules}

    def of(self, result: Mapping[str, Json]) -> Mapping[str, Json]:
        """Give the rule of a result, or nothing when it is not described."""
        place = result.get("ruleIndex", (result.get("rule") or {}).get("index", -1))
        if type(place) is int and 0 <= place < len(self._rules):
            return self._rules[place]
        return self._named.get(str(result.get("ruleId") or (result.get("rule") or {}).get("id")), {})

    def message(self, result: Mapping[str, Json], rule: Mapping[str, Json]) -> str:
        """Give what a result says: its own words, or those of its rule with what belongs in them."""
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
    """Give the security severity, from 0 to 10, where one is said."""
    for properties in _properties(result, rule):
        try:
            score = float(properties["security-severity"])
        except (KeyError, TypeError, ValueError):
            continue
        if isfinite(score):
            return score
    return None


def cwe_in(result: Mapping[str, Json], rule: Mapping[str, Json]) -> str:
    """Give the first weakness that the tags name."""
    tags = (str(tag) for properties in _properties(result, rule) for tag in properties.get("tags") or ())
    found = (_CWE_TAG.fullmatch(tag) for tag in tags)
    return next((cwe_of(one[1]) for one in found if one is not None), "")


def _properties(*holders: Mapping[str, Json]) -> Iterator[Mapping[str, Any]]:
    for holder in holders:
        properties = holder.get("properties")
        if isinstance(properties, Mapping):
            yield properties
