"""Findings of different agents that say the same become one; what one agent reports is never merged with itself.

The result depends on what was found, not on the order it came in, and no agent's findings become fewer by it.

The worst is taken first, and whatever says the same as it joins it; so everybody is like the one they are counted
under, and no chain of neighbours runs through a file. A finding is compared with a bounded number of others.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from muster.verify.findings.finding import RANKS, Finding, FindingOrigin, Merged

MAX_COMPARED = 200
_BLOCK = 8  # lines
_MAX_BLOCKS = 64  # blocks; a finding about more lines is compared with everything in its file

Group = tuple[str, ...]  # a file, and what findings in it have in common


@dataclass(slots=True)
class _Cluster:
    """A finding, and all that say the same."""

    leader: Finding
    members: dict[str, Finding] = field(default_factory=dict)  # by agent: one of each

    def merged(self) -> Merged:
        """Return all of it as one: the worst, with what others can add to it."""
        said = self.members.values()
        sure = [one.confidence for one in said if one.confidence is not None]
        lines = (self.leader.line, self.leader.end_line)
        replacing = (one.replacement for one in said if (one.line, one.end_line) == lines)
        finding = replace(
            self.leader,
            fix=next((one.fix for one in said if one.fix), ""),
            confidence=max(sure, default=None),
            replacement=next((text for text in replacing if text is not None), None),
        )
        by = tuple(sorted(self.members))
        return Merged(finding=finding, by=by, origins=self._origins(by) if len(by) > 1 else ())

    def _origins(self, by: Sequence[str]) -> tuple[FindingOrigin, ...]:
        return tuple(_origin(agent, self.members[agent]) for agent in by)


def merge(findings_by_agent: Sequence[tuple[str, Sequence[Finding]]]) -> tuple[Merged, ...]:
    """Merge the findings of some agents, the worst first; an agent may be there more than once."""
    given = ((_order(finding), finding, agent) for agent, findings in findings_by_agent for finding in findings)
    index = _ClusterIndex()
    for _, finding, agent in sorted(given, key=lambda item: (item[0], item[2])):
        cluster = index.find(finding, agent)
        if cluster is None:
            cluster = index.add(finding)
        cluster.members[agent] = finding
    return tuple(cluster.merged() for cluster in index.clusters)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the worst first, in an order that does not depend on how they came."""
    return sorted(findings, key=_order)


def _origin(agent: str, finding: Finding) -> FindingOrigin:
    return FindingOrigin(
        agent=agent,
        severity=finding.severity,
        line=finding.line,
        end_line=finding.end_line,
        finding=finding.finding,
        rule=finding.rule,
        cwe=finding.cwe,
    )


def _order(finding: Finding) -> tuple[object, ...]:
    """Return the place of a finding among all; what merging can change stands last, so that merging twice is idle."""
    return (
        RANKS[finding.severity],
        finding.file,
        finding.line,
        finding.end_line,
        finding.finding,
        finding.cwe,
        finding.rule,
        finding.fix,
        -1.0 if finding.confidence is None else finding.confidence,
        finding.replacement is None,
        finding.replacement or "",
    )


class _ClusterIndex:
    """Finds the cluster of a finding by what it has in common with it, near its lines."""

    def __init__(self) -> None:
        self.clusters: list[_Cluster] = []
        self._near: dict[tuple[Group, int], list[_Cluster]] = defaultdict(list)
        self._all: dict[Group, list[_Cluster]] = defaultdict(list)
        self._wide: dict[Group, list[_Cluster]] = defaultdict(list)

    def find(self, finding: Finding, agent: str) -> _Cluster | None:
        """Return the first cluster whose leader says the same, and to which the agent has not contributed."""
        for group in _groups(finding):
            for cluster in islice(self._candidates(finding, group), MAX_COMPARED):
                if agent not in cluster.members and same(finding, cluster.leader):
                    return cluster
        return None

    def add(self, finding: Finding) -> _Cluster:
        """Open a cluster."""
        cluster = _Cluster(finding)
        self.clusters.append(cluster)
        blocks = _blocks(finding)
        for group in _groups(finding):
            self._all[group].append(cluster)
            if len(blocks) > _MAX_BLOCKS:
                self._wide[group].append(cluster)
            else:
                for block in blocks:
                    self._near[group, block].append(cluster)
        return cluster

    def _candidates(self, finding: Finding, group: Group) -> Iterator[_Cluster]:
        blocks = _blocks(finding)
        if len(blocks) > _MAX_BLOCKS:
            yield from self._all.get(group, ())
            return
        for block in blocks:
            yield from self._near.get((group, block), ())
        yield from self._wide.get(group, ())


def _groups(finding: Finding) -> list[Group]:
    """Name what a finding can have in common with others; the same words first, any words last."""
    found: list[Group] = [(finding.file, "words", finding.finding)]
    if finding.cwe:
        found.append((finding.file, "cwe", finding.cwe))
    if finding.rule:
        found.append((finding.file, "rule", finding.rule))
    return [*found, (finding.file,)]


def _blocks(finding: Finding) -> range:
    return range(finding.line // _BLOCK, finding.end_line // _BLOCK + 1)


ALIKE = 0.6  # of the words that either has, both have
_STEM = 5  # letters: "formatted" and "formatting" are one word, "input" and "inputs" too
_MAX_WORDS = 100  # words that are compared
_WORD = re.compile(r"\w+")


def same(one: Finding, other: Finding) -> bool:
    """Return whether two findings are duplicates."""
    return meet(one, other) and (
        (one.cwe != "" and one.cwe == other.cwe)
        or (one.rule != "" and one.rule == other.rule)
        or alike(one.finding, other.finding)
    )


def meet(one: Finding, other: Finding) -> bool:
    """Return whether two findings are in the same file, at lines that overlap."""
    return one.file == other.file and one.line <= other.end_line and other.line <= one.end_line


def alike(one: str, other: str) -> bool:
    """Return whether two texts share most of their words."""
    if one == other:
        return True
    left, right = _words(one), _words(other)
    both = len(left & right)
    return both > 0 and both >= ALIKE * (len(left) + len(right) - both)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    found: dict[str, None] = {}
    for word in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        found.setdefault(word[0][:_STEM])
        if len(found) == _MAX_WORDS:
            break
    return frozenset(found)
