"""chain.yaml and chain.toml as a chain: everything that is wrong is told at once, with its line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster.domain.canonical import Json
from muster.pool.chains.chain import Chain, ChainInput, ChainStep
from muster.pool.chains.forms import GROUP, INPUT, STEP, TOP, ChainForm, StepForm
from muster.pool.chains.rules import chain_flaws
from muster.text.diagnostics import Diagnostics, places_of, validation_words
from muster.text.document_tree import MAX_FLAWS, Flaw, Map, Place, Unreadable
from muster.text.documents.declared import bad_file, read_tree, require_file, unreadable_flaw
from muster.text.files import shown
from muster.text.files_beside import object_beside
from muster.text.words import unknown_keys

NAME = "chain.yaml"
_LIST = "must be a list of steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInspection:
    """What is in a file with a chain, and everything that is wrong with it."""

    file: str
    chain: Chain | None  # None when something is wrong
    flaws: tuple[Flaw, ...] = ()


def read_chain(path: Path) -> Chain:
    """Read a chain; raises NotFound, or one BadFile with everything that is wrong."""
    found = inspect_chain(path)
    if found.chain is None:
        raise bad_file(found.flaws)
    return found.chain


def inspect_chain(path: Path) -> ChainInspection:
    """Look through a file with a chain, and return everything that is wrong with it, up to a bound."""
    require_file(path, kind="chain")
    file = shown(path)
    try:
        tree = read_tree(path, what="a file with a chain", listed="steps")
    except Unreadable as error:
        return ChainInspection(file=file, chain=None, flaws=(unreadable_flaw(path, error),))
    reading = _ChainReader(path.parent, tree, Diagnostics(file, tree, tree.line))
    chain = reading.chain()
    return ChainInspection(file=file, chain=chain, flaws=tuple(reading.flaws[:MAX_FLAWS]))


class _ChainReader:
    """One file that is being read."""

    def __init__(self, folder: Path, tree: Map, diagnostics: Diagnostics) -> None:
        self._folder, self._tree, self._diagnostics = folder, tree, diagnostics

    @property
    def flaws(self) -> list[Flaw]:
        """Return all that is wrong, from top to bottom."""
        return sorted(self._diagnostics.flaws, key=lambda flaw: flaw.line or 0)

    def chain(self) -> Chain | None:
        """Return the chain; None when there is a flaw."""
        form = self._form()
        groups = self._groups(form.agent or "" if form else "")
        if form is None or self.flaws:
            return None
        chain = Chain(
            name=form.name,
            groups=groups,
            inputs={name: ChainInput(required=one.required, default=one.default) for name, one in form.inputs.items()},
            isolation=form.isolation,
        )
        for place, message in chain_flaws(chain):
            self._diagnostics.say(self._written(place), message)
        return None if self.flaws else chain

    def _form(self) -> ChainForm | None:
        self._know((), self._tree, TOP)
        inputs = self._tree.get("inputs")
        for name, one in inputs.items() if isinstance(inputs, Mapping) else ():
            self._know(("inputs", name), one, INPUT)
        try:
            return ChainForm.model_validate(self._tree)
        except ValidationError as error:
            self._diagnostics.take(error)
            return None

    def _groups(self, agent: str) -> tuple[tuple[ChainStep, ...], ...]:
        listed = self._tree.get("steps")
        if not isinstance(listed, list) or not listed:
            self._diagnostics.say(("steps",), "missing: a list of steps" if not listed else _LIST)
            return ()
        return tuple(self._group(("steps", index), tree, agent) for index, tree in enumerate(listed))

    def _group(self, place: Place, tree: Any, agent: str) -> tuple[ChainStep, ...]:
        if not isinstance(tree, Mapping) or "parallel" not in tree:
            return tuple(step for step in [self._step(place, tree, agent)] if step is not None)
        self._know(place, tree, GROUP)
        listed = tree["parallel"]
        if not isinstance(listed, list) or not listed:
            self._diagnostics.say((*place, "parallel"), _LIST)
            return ()
        steps = [self._step((*place, "parallel", index), one, agent) for index, one in enumerate(listed)]
        return tuple(step for step in steps if step is not None)

    def _step(self, place: Place, tree: Any, agent: str) -> ChainStep | None:
        self._know(place, tree, STEP)
        try:
            form = StepForm.model_validate(tree)
        except ValidationError as error:
            for inside, detail in zip(places_of(error), error.errors(include_url=False), strict=True):
                self._diagnostics.say((*place, *inside), validation_words(detail))
            return None
        return _step(form, self._schema(place, form.schema_file), agent)

    def _schema(self, place: Place, name: str | None) -> Mapping[str, Json] | None:
        if name is None:
            return None
        try:
            return object_beside(self._folder, name)
        except Unreadable as error:
            self._diagnostics.say((*place, "schema"), error.message)
            return None

    def _know(self, place: Place, tree: Any, known: tuple[str, ...]) -> None:
        for key, message in unknown_keys(tree, known):
            self._diagnostics.say((*place, key), message)

    def _written(self, place: Place) -> Place:
        """Return a place as it is in the file, where a group may also be written with one step in it."""
        if len(place) < 2 or place[0] != "steps" or "parallel" in place:
            return place
        tree = self._tree["steps"][place[1]]
        return (*place[:2], "parallel", 0, *place[2:]) if "parallel" in tree else place


def _step(form: StepForm, schema: Mapping[str, Json] | None, agent: str) -> ChainStep:
    step = ChainStep(
        name=form.name,
        prompt=form.prompt or "",
        command=tuple(form.command or ()),
        agent=form.agent or "",
        system=form.system or "",
        model=form.model or "",
        tools=tuple(form.tools),
        max_tokens=form.max_tokens,
        budget_usd=form.budget_usd,
        timeout_secs=form.timeout_secs,
        dispatch=form.dispatch,
        when=form.when or "",
        for_each=form.for_each or "",
        extract=form.extract,
        schema=schema,
        retries=form.retries,
        backoff_secs=form.backoff_secs,
        recovery=form.recovery or "",
        check=tuple(form.check or ()),
    )
    return step.with_agent(agent)


STARTER = """\
# A chain: steps that run in order; each can use the output of earlier ones.
#   muster chain run {name}/chain.yaml --input topic=bees
name: {name}
agent: sim/echo            # the agent of all prompts below; it needs no key and repeats its prompt
inputs:
  topic: {{ required: true }}
steps:
  - name: plan
    prompt: '{{{{"sections": ["What are {{input.topic}}?", "Why {{input.topic}} matter"]}}}}'
    extract: {{ sections: sections, first: "sections[0]" }}
    retries: 1             # without this JSON, the agent sees its output and the error, and tries once more
  - name: write
    when: "steps.plan.first != ''"
    for_each: "{{steps.plan.sections}}"
    prompt: "Write about: {{item}}"
  - parallel:
      - name: title
        prompt: "A title for a text that begins with: {{steps.plan.first}}"
      - name: length
        command: ["sh", "-c", "printf %s \\"$1\\" | wc -w", "sh", "{{steps.write.output}}"]
  - name: polish
    prompt: "{{steps.title.output}}\\n\\n{{steps.write.output}}"
    check: ["test", "-n", "{{output}}"]   # the step succeeds if this exits with 0
"""


def starter(name: str) -> Mapping[str, str]:
    """Return the files of a folder to begin with, by their paths."""
    return {NAME: STARTER.format(name=name)}
