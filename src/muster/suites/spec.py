"""The spec of a suite run: what `muster run` was told, and what a Python program may say to start one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from muster.domain.canonical import Json, JsonObject, digest
from muster.domain.dispatch import Mode
from muster.domain.effort import with_effort
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.named import COUNCIL_JUDGE
from muster.domain.order import field_flaws, shared_fields
from muster.suites.journal import Subject, SuiteSnapshot
from muster.suites.order import SuiteChoice, SuiteFields
from muster.suites.values.case import Case, tag_key
from muster.suites.values.rules import DEFAULT_THRESHOLD
from muster.text import typed
from muster.text.declared_values import read_value

NOBODY = "nobody"  # the subject of a damaged case that does not say of whom it is to be asked
NO_SUITE_RUN = "not a valid suite run"
_LISTS = ("path", "agents", "prompts", "tags", "only")
_JUDGED_BY = ("judge", "judge_samples", "evaluator", "threshold", "generate")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSpec(SuiteFields):
    """What to run, on whom, and who judges; raises BadArgument with everything that is wrong with it."""

    path: tuple[str, ...]
    answers: str | None = None  # a file of recorded answers, which are scored instead of asking anybody
    council: JsonObject | None = None  # the policy of the council that judges, as it was read from its file
    judge_samples: int = 1
    epochs: int = 1
    only: tuple[str, ...] | None = None  # ids of cases; of all the others none is run
    threshold: float = DEFAULT_THRESHOLD  # where a case names none
    generate: bool = True  # False: only answers that are known are judged; no agent is asked anew

    def __post_init__(self) -> None:
        """Take one text for a list of it, and everything once: who is named twice is not tested twice."""
        for name in _LISTS:
            given = getattr(self, name)
            if given is not None:
                listed = (given,) if isinstance(given, str) else given
                object.__setattr__(self, name, tuple(dict.fromkeys(listed)))
        for name in ("threshold", "temperature"):
            given = getattr(self, name)
            object.__setattr__(self, name, given if given is None else float(given))
        if flaws := list(_spec_flaws(self)):
            raise BadArgument.of(flaws, about=NO_SUITE_RUN)

    @property
    def judge_file(self) -> str | None:
        """The file of the policy when the judge is a council."""
        is_council = self.judge is not None and self.judge.startswith(COUNCIL_JUDGE)
        return self.judge.removeprefix(COUNCIL_JUDGE) if self.judge is not None and is_council else None

    @property
    def judges_in_batches(self) -> bool:
        """Return whether the judge is asked in batches, however the agents are asked."""
        return self.judge_dispatch is Mode.BATCH

    @property
    def tag(self) -> str:
        """The name of the way results are judged; results under another tag say nothing about this one."""
        how = {name: getattr(self, name) for name in _JUDGED_BY}
        if self.council is not None:
            how["council"] = self.council
        return digest(how)[:12]

    def subjects(self, snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        """Return who is tested: every agent with every prompt."""
        if self.answers is not None:
            return (Subject(agent=""),)
        return self._matrix(self.agents, self.model_effort, snapshot)

    def _matrix(self, names: Sequence[str], effort: str | None, snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        agents = dict.fromkeys(with_effort(name, effort) for name in names)
        prompts = [prompt.name for prompt in snapshot.prompts] or [""]
        return tuple(Subject(agent=agent, prompt=prompt) for prompt in prompts for agent in agents)

    def tested_on(self, case: Case, snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        """Return who is tested on a case: agents and effort of the case replace those of the run."""
        if not case.has_own_subjects or self.answers is not None:
            return self.subjects(snapshot) or ((Subject(agent=NOBODY),) if case.flaw else ())
        return self._matrix(case.agents or self.agents, case.model_effort or self.model_effort, snapshot)

    def stored(self) -> Any:
        """Return the spec as it is stored."""
        given = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: typed.to_builtins(value) for name, (value, usual) in given.items() if value != usual}


def _spec_flaws(spec: SuiteSpec) -> Iterator[FieldFlaw]:
    """Yield what is wrong with a suite run."""
    yield from field_flaws(spec)
    if not spec.path:
        yield FieldFlaw(path="path", message="is empty", code=FlawCode.OUT_OF_BOUNDS)
    if not all(tag.strip() for tag in spec.tags):
        yield FieldFlaw(path="tags", message="has an empty tag, which selects nothing; leave it out to take all cases")
    if spec.answers is not None and (spec.agents or spec.prompts):
        yield _whole("recorded answers cannot be combined with agents or prompts")
    if spec.judge_file is None and spec.council is not None:
        yield _whole(f"council is the policy of a judge {COUNCIL_JUDGE}FILE, and the judge is {spec.judge}")
    if spec.judge_file is not None and spec.judge_samples > 1:
        yield _whole("judge_samples must be 1 with a council, whose members are the samples")


def _whole(message: str) -> FieldFlaw:
    return FieldFlaw(path="", message=message, by_itself=True)


def read_spec(spec: Any) -> SuiteSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    given = spec if isinstance(spec, Mapping) else {}
    listed = {name: [given[name]] for name in _LISTS if isinstance(given.get(name), str)}
    return read_value({**given, **listed} if given else spec, SuiteSpec, about=NO_SUITE_RUN)


def chosen_fields(choice: SuiteChoice) -> JsonObject:
    """Return what a caller chose by the names of a spec, without what was left open."""
    shared = {name: value for name, value in shared_fields(choice, SuiteSpec).items() if value not in (None, ())}
    return {"path": choice.paths} | shared


def with_changes(before: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return a stored spec with some changes; what belongs to another judge alone is left out."""
    kept = dict(before)
    if "judge" in given:
        kept.pop("council", None)
        if str(given["judge"]).startswith(COUNCIL_JUDGE):
            kept.pop("judge_samples", None)
    return kept | dict(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSelection:
    """What a case must be like to be taken; everything that is said must hold.

    A damaged case is always taken: what it lacks may be the very thing by which it would have been selected.
    """

    filter: str | None = None  # a glob on the id, or on what comes after its first slash
    tags: tuple[str, ...] = ()  # any of them, however they are spelled
    only: frozenset[str] | None = None  # ids

    def takes(self, case: Case) -> bool:
        """Return whether a case is meant."""
        if case.flaw:
            return True
        if self.only is not None and case.id not in self.only:
            return False
        if self.tags and set(map(tag_key, self.tags)).isdisjoint(map(tag_key, case.tags)):
            return False
        if self.filter is None:
            return True
        return any(fnmatchcase(name, self.filter) for name in (case.id, case.id.partition("/")[2]))
