"""Test cases written by a model: where they go is checked before anything is spent, and they are written at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument
from muster.domain.order import require_bounds, shared_fields
from muster.domain.run import Run
from muster.suites.generate.files import create, extend, file_to_create, file_to_extend, yaml_text
from muster.suites.order import GenerationFields, GenerationOrder
from muster.text.forms import is_kebab
from muster.text.words import count

__all__ = ["Generated", "Generation", "conclude_generation", "yaml_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(GenerationFields):
    """What is to be written, by whom, and where to."""

    file: Path | None  # None: nowhere
    extends: Path | None

    @staticmethod
    def of(order: GenerationOrder) -> "Generation":
        """Return what is to be generated; raises BadArgument when that is unclear, or its file cannot be written."""
        require_bounds(order)
        _require_one(order)
        extends = None if order.extend is None else file_to_extend(order.extend)
        file = extends if extends or order.dry_run else file_to_create(order.output or Path(order.skill))
        return Generation(
            **shared_fields(order, GenerationFields),
            file=None if order.dry_run else file,
            extends=extends,
        )

    def spec(self) -> JsonObject:
        """Return the spec of the run."""
        if self.extends is not None:
            return {"agent": self.agent, "count": self.count, "extend": str(self.extends)}
        return {"agent": self.agent, "count": self.count, "skill": self.skill, "description": self.description}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The cases that a run generated, and where they were written to."""

    run: Run
    file: Path | None  # None: nowhere

    @property
    def cases(self) -> Sequence[Mapping[str, Any]]:
        """Return the cases."""
        found: Sequence[Mapping[str, Json]] = self.run.result["cases"]
        return found

    @property
    def shortfall(self) -> str:
        """Return why there are fewer cases than were asked for; empty when there are not."""
        made, result = len(self.cases), self.run.result
        if made >= result["asked"]:
            return ""
        why = result["failure"] or next(iter(result["reasons"]), "")
        words = "no case could be generated"
        if made:
            words = f"only {made} of {count(result['asked'], 'case')} could be generated"
        return f"{words}: {why}" if why else words

    @property
    def error(self) -> Mapping[str, Json] | None:
        """Return that a budget was exceeded, or why there are fewer cases than were asked for."""
        if self.run.overdraft is not None or not self.shortfall:
            return self.run.overdraft
        code = "too_few" if self.cases else "nothing_generated"
        return {"code": code, "message": self.shortfall, "suggestions": [f"muster runs show {self.run.id} --calls"]}


def conclude_generation(wanted: Generation, run: Run) -> Generated:
    """Write the cases that a run generated to their file."""
    result: Mapping[str, Any] = run.result
    if not result["cases"] or wanted.file is None:
        return Generated(run=run, file=None)
    if wanted.extends is not None:
        extend(wanted.file, result["cases"])
    else:
        create(wanted.file, result["skill"], result["cases"])
    return Generated(run=run, file=wanted.file)


def _require_one(order: GenerationOrder) -> None:
    skill, description = order.skill, order.description
    if order.extend is not None and (skill or description or order.output):
        raise BadArgument(
            "a suite that is extended keeps its skill, description and file; give none of them",
            suggestions=("use --extend alone, or --skill with --description",),
        )
    if order.extend is None and not (skill and description.strip()):
        missing = "a new skill requires a description" if skill else "a new skill requires a name"
        raise BadArgument(
            missing if skill or description.strip() else "either a new skill or a suite to extend is required",
            suggestions=("--skill NAME --description TEXT for a new suite", "--extend DIR to add cases to a suite"),
        )
    if skill and not is_kebab(skill):
        raise BadArgument(f"{skill!r} is not a valid name of a skill", suggestions=("write it like code-reviewer",))
