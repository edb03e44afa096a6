"""The spec of a suite run: what `muster run` was told, and what a Python program may say to start one."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from muster.domain.canonical import Json, digest
from muster.domain.errors import BadArgument
from muster.suites.case import DEFAULT_THRESHOLD, Case, tag_key
from muster.suites.journal import Subject, SuiteSnapshot
from muster.text.diagnostics import validation_words
from muster.text.limited.patterns import LONGEST_GLOB

MOST_EPOCHS = 1000
MOST_SAMPLES = 25
COUNCIL = "council:"  # before the file of a policy: the judge is a council
NOBODY = "nobody"  # the subject of a damaged case that does not say of whom it is to be asked

EvaluatorChoice = Literal["rules", "golden", "process", "judge", "all"]


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """Take everything once: who is named twice is not tested twice."""
    return tuple(dict.fromkeys(values))


def _no_blank(values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(value.strip() for value in values):
        raise ValueError("an empty tag selects nothing; leave it out to take all cases")
    return values


Names = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_distinct)]


class SuiteSpec(BaseModel):
    """What to run, on whom, and who judges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[Names, Field(min_length=1)]
    agents: Names = ()
    prompts: Names = ()  # files; each is tested with each agent
    answers: str | None = None  # a file of recorded answers, which are scored instead of asking anybody
    judge: str | None = None  # an agent, or "council:" and the file of its policy
    council: dict[str, Any] | None = None  # the policy of the council that judges, as it was read from its file
    judge_samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 1
    judge_dispatch: Literal["live", "batch"] | None = None
    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] = 1
    filter: Annotated[str, Field(max_length=LONGEST_GLOB)] | None = None  # a glob on case ids
    tags: Annotated[Names, AfterValidator(_no_blank)] = ()  # any of them, however they are spelled
    only: Names | None = None  # ids of cases; of all the others none is run
    evaluator: EvaluatorChoice | None = None  # instead of each case's own
    threshold: Annotated[float, Field(ge=0, le=1)] = DEFAULT_THRESHOLD  # where a case names none
    max_tokens: Annotated[int, Field(ge=1)] | None = None  # where a case names none; the same for the next two
    temperature: Annotated[float, Field(ge=0)] | None = None
    seed: int | None = None
    generate: bool = True  # False: only answers that are known are judged; no agent is asked anew

    @model_validator(mode="after")
    def _has_subject(self) -> "SuiteSpec":
        if self.answers is not None and (self.agents or self.prompts):
            raise ValueError("recorded answers cannot be combined with agents or prompts")
        return self

    @model_validator(mode="after")
    def _asks_council_once(self) -> "SuiteSpec":
        if self.judge_file is None and self.council is not None:
            raise ValueError(f"council is the policy of a judge {COUNCIL}FILE, and the judge is {self.judge}")
        if self.judge_file is not None and self.judge_samples > 1:
            raise ValueError("judge_samples must be 1 with a council, whose members are the samples")
        return self

    @property
    def judge_file(self) -> str | None:
        """The file of the policy when the judge is a council."""
        is_council = self.judge is not None and self.judge.startswith(COUNCIL)
        return self.judge.removeprefix(COUNCIL) if self.judge is not None and is_council else None

    @property
    def tag(self) -> str:
        """The name of the way results are judged; results under another tag say nothing about this one."""
        how = self.model_dump(include={"judge", "judge_samples", "evaluator", "threshold", "generate"}, mode="json")
        if self.council is not None:
            how["council"] = self.council
        return digest(how)[:12]

    def subjects(self, snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        """Return who is tested: every agent with every prompt."""
        if self.answers is not None:
            return (Subject(agent=""),)
        return self._matrix(self.agents, snapshot)

    def _matrix(self, agents: tuple[str, ...], snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        prompts = [prompt.name for prompt in snapshot.prompts] or [""]
        return tuple(Subject(agent=agent, prompt=prompt) for prompt in prompts for agent in agents)

    def tested_on(self, case: Case, snapshot: SuiteSnapshot) -> tuple[Subject, ...]:
        """Return who is tested on a case: agents of the case replace those of the run."""
        if not case.agents or self.answers is not None:
            return self.subjects(snapshot) or ((Subject(agent=NOBODY),) if case.flaw else ())
        return self._matrix(case.agents, snapshot)

    def stored(self) -> Json:
        """Return the spec as it is stored."""
        return self.model_dump(mode="json", exclude_defaults=True)


def read_spec(spec: Json) -> SuiteSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    try:
        return SuiteSpec.model_validate(spec)
    except ValidationError as error:
        flaws = (f"{'.'.join(map(str, flaw['loc'])) or 'spec'}: {validation_words(flaw)}" for flaw in error.errors())
        raise BadArgument(f"not a valid suite run: {'; '.join(flaws)}") from None


def with_changes(before: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return a stored spec with some changes; what belongs to another judge alone is left out."""
    kept = dict(before)
    if "judge" in given:
        kept.pop("council", None)
        if str(given["judge"]).startswith(COUNCIL):
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
