"""Files with chains: what is wrong is told at once, each with its line."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.isolation import Isolation
from muster.pool.chains.chain import ChainInput, ChainSpec
from muster.pool.chains.reading import inspect_chain, read_chain, starter
from muster.pool.chains.spec import read_spec, stored

TOP = "name: c\nagent: sim/echo\ninputs: {x: {}}\nsteps:\n"


def write(folder: Path, text: str, name: str = "chain.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def flaws(folder: Path, text: str, name: str = "chain.yaml") -> list[tuple[int | None, str]]:
    found = inspect_chain(write(folder, text, name))
    assert found.chain is None
    return [(flaw.line, flaw.message) for flaw in found.flaws]


def test_yaml_and_toml_give_the_same_chain(tmp_path: Path) -> None:
    yaml = write(
        tmp_path,
        "name: c\nagent: a\nisolation: clone\ninputs: {x: {required: true}, y: {default: [1]}}\nsteps:\n"
        "  - {name: one, prompt: '{input.x}', extract: {v: 'a[0]'}, retries: 2}\n"
        "  - parallel: [{name: two, command: [echo, '{steps.one.v}']}, {name: three, prompt: hi, agent: b}]\n",
    )
    toml = write(
        tmp_path,
        'name = "c"\nagent = "a"\nisolation = "clone"\n[inputs]\nx = {required = true}\ny = {default = [1]}\n'
        '[[steps]]\nname = "one"\nprompt = "{input.x}"\nextract = {v = "a[0]"}\nretries = 2\n'
        '[[steps]]\n[[steps.parallel]]\nname = "two"\ncommand = ["echo", "{steps.one.v}"]\n'
        '[[steps.parallel]]\nname = "three"\nprompt = "hi"\nagent = "b"\n',
        "chain.toml",
    )
    found = read_chain(yaml)
    assert found == read_chain(toml)
    assert found.inputs == {"x": ChainInput(required=True), "y": ChainInput(default=[1])}
    assert found.isolation is Isolation.CLONE
    assert [[step.name for step in group] for group in found.groups] == [["one"], ["two", "three"]]
    assert [step.agent for step in found.steps] == ["a", "", "b"]


def test_the_starter_is_a_chain(tmp_path: Path) -> None:
    (text,) = starter("my-notes").values()
    assert read_chain(write(tmp_path, text)).name == "my-notes"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("{name: a, prompt: '{nobody}'}", "steps[0].prompt: unknown name {nobody}; known here: {input.x}"),
        ("{name: a, prompt: '{input.y}'}", "unknown input {input.y}; did you mean {input.x}?"),
        ("{name: a, prompt: '{previous_output}'}", "unknown name {previous_output}"),
        ("{name: a, prompt: '{steps.a.output}'}", "this step is not done by then; done by then: none"),
        ("{name: a, prompt: '{steps}'}", "names no step"),
        ("{name: a, prompt: '{steps.nobody.output}'}", "unknown step in {steps.nobody.output}"),
        ("{name: a, prompt: '{item}'}", "unknown name {item}"),
        ("{name: a, prompt: '{error}'}", "unknown name {error}"),
        ("{name: a, prompt: 'a { b'}", "belongs to no name; write {{"),
        ("{name: a, prompt: hi, recovery: '{output}'}", "steps[0].recovery: unknown name {output}"),
        ("{name: a, prompt: hi, when: 'x ='}", "steps[0].when: 'x =' is not a valid condition"),
        ("{name: a, prompt: hi, when: input.z}", "unknown input {input.z}"),
        ("{name: a, prompt: hi, for_each: 'x {input.x}'}", "must be one name and nothing else"),
        ("{name: a, prompt: hi, extract: {v: 'a..b'}}", "steps[0].extract.v: 'a..b' is not a path"),
        ("{name: a, prompt: hi, extract: {output: a}}", "is not called output"),
        ("{name: a, prompt: hi, retries: -1}", "steps[0].retries: must be at least 0"),
        ("{name: a, prompt: hi, retires: 1}", "steps[0].retires: unknown key; did you mean retries?"),
        ("{name: a, command: [ls], model: m}", "steps[0].model: only for steps that ask an agent"),
        ("{name: a, prompt: hi, tools: t}", "steps[0].tools: must be a list"),
        ("{name: a, prompt: hi, schema: shape.json}", "steps[0].schema: no such file"),
        ("{name: a, prompt: hi, schema: ../shape.json}", "is not allowed"),
        ("{name: a, prompt: hi, dispatch: later}", "steps[0].dispatch: must be"),
        ("{name: a, prompt: hi, timeout_secs: 0}", "must be more than 0"),
        ("{name: a, prompt: hi, budget_usd: x}", "steps[0].budget_usd: must be a number"),
        ("{name: a, prompt: hi, command: [ls]}", "either a prompt or a command"),
        ("{name: a}", "either a prompt or a command"),
        ("{name: a, command: [ls], agent: x}", "steps[0].agent: only for steps that ask an agent"),
        ("{name: a, command: [ls], dispatch: batch}", "steps[0].dispatch: only for steps that ask an agent"),
        ("{prompt: hi}", "steps[0].name: missing"),
        ("{name: a.b, prompt: hi}", "the name of a step has only letters"),
        ("{name: a, command: ls -l}", "no shell is used"),
        ("{name: a, command: ['{input.x}']}", "must be a program"),
        ("{name: a, command: [ls, '--x={input.x}']}", "a name must be a separate argument"),
        ("{name: a, command: [sh, -c, '{input.x}']}", "would be run as code after -c"),
        ("{name: a, command: [/bin/bash, -ec, '{input.x}']}", "would be run as code after -ec"),
        ("{name: a, prompt: hi, check: [python3, -c, '{output}']}", "would be run as code after -c"),
        ("{parallel: []}", "steps[0].parallel: must be a list of steps"),
        ("{parallel: [{name: a, prompt: hi}], name: x}", "steps[0].name: unknown key"),
        ("just text", "must be a mapping"),
    ],
)
def test_what_is_wrong_with_a_step_is_told_with_its_line(tmp_path: Path, step: str, words: str) -> None:
    found = flaws(tmp_path, f"{TOP}  # a comment\n  - {step}\n")
    assert [line for line, _ in found] == [6] * len(found)
    assert words in found[0][1]


def test_every_line_is_that_of_its_key(tmp_path: Path) -> None:
    text = (
        "name: Not Kebab\nagnet: x\nisolation: tree\nsteps:\n"
        "  - name: a\n    prompt: hi\n    retires: 1\n"
        "  - parallel:\n      - name: b\n        prompt: 7\n        dispatch: x\n"
    )
    assert [line for line, _ in flaws(tmp_path, text)] == [1, 2, 3, 7, 11]


def test_names_in_a_group_are_checked_against_the_steps_before_it(tmp_path: Path) -> None:
    text = (
        f"{TOP}  - {{name: a, prompt: hi}}\n  - parallel:\n    - {{name: b, prompt: '{{steps.c.output}}'}}\n"
        "    - {name: c, prompt: '{steps.a.output}'}\n  - {name: a, prompt: hi}\n"
    )
    found = flaws(tmp_path, text)
    assert [line for line, _ in found] == [5, 7, 9]
    assert "not done by then; done by then: a" in found[1][1]
    assert found[0][1] == found[2][1].replace("[2]", "[0]") == "steps[0].name: duplicate name of a step: a"


def test_a_step_without_an_agent_is_refused_and_a_command_needs_none(tmp_path: Path) -> None:
    steps = ("{name: a, command: [ls]}", "{name: b, prompt: hi}", "{name: d, command: [ls], recovery: x}")
    text = "name: c\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)
    assert [(line, message.partition(":")[0]) for line, message in flaws(tmp_path, text)] == [
        (4, "steps[1].agent"),
        (5, "steps[2].agent"),
    ]


def test_notation_that_cannot_be_read_has_its_line(tmp_path: Path) -> None:
    assert flaws(tmp_path, "name: c\nsteps: [\n")[0][0] is not None
    assert flaws(tmp_path, 'name = "c"\n[[steps]\n', "chain.toml")[0][0] == 2
    assert flaws(tmp_path, "name: c\n")[0][1] == "steps: missing: a list of steps"
    with pytest.raises(BadFile, match=r"chain\.yaml:2: steps"):
        read_chain(write(tmp_path, "name: c\nsteps: 3\n"))
    with pytest.raises(NotFound):
        read_chain(tmp_path / "nothing.yaml")


def test_a_spec_is_read_as_it_is_stored(tmp_path: Path) -> None:
    (text,) = starter("notes").values()
    spec = ChainSpec(chain=read_chain(write(tmp_path, text)), folder="/", input={"topic": "x"})
    assert read_spec(stored(spec)) == spec


def spec_with(*steps: dict[str, object], **rest: object) -> dict[str, object]:
    return {"chain": {"name": "c", "groups": [[{"name": "a", "agent": "a", **step}] for step in steps]}, **rest}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ([], "must be an object"),
        ({}, "chain"),
        (spec_with(), "at least one step"),
        (spec_with({"prompt": "{x}"}), "unknown name {x}"),
        (spec_with({"prompt": "p", "nmae": 1}), "chain.groups[0][0].nmae is unknown"),
        (spec_with({"prompt": "p"}, input={"y": 1}), "input 'y'"),
        (spec_with({"prompt": "p", "retries": 999}), "retries"),
        (spec_with({"prompt": "p"}, rows=[{}, {"y": 1}]), "row 2: unknown input 'y'"),
    ],
)
def test_a_spec_that_somebody_wrote_is_checked_too(spec: object, words: str) -> None:
    with pytest.raises(BadArgument, match="not a valid spec of a chain") as caught:
        read_spec(spec)
    assert words in caught.value.message
