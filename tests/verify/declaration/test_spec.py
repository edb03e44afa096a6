"""The spec of a verification as it is stored."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument
from muster.verify.declaration.declaration import shipped
from muster.verify.declaration.resolve import THRESHOLDS
from muster.verify.declaration.verification import Kind, LeftOut, Limits, Marker, Shape, Verification, Verifier
from muster.verify.spec import read_spec, stored

MODEL = Verifier(name="a", model="m", prompt="Look.")
COMMAND = Verifier(name="b", wave=2, kind=Kind.COMMAND, command=("ruff", "{files}"), parser="ruff")
SMALL = Verification(root="/code", files=("src/a.py",), verifiers=(MODEL, COMMAND))
FULL = Verification(
    root="/code",
    files=("src/a.py", "b.py"),
    verifiers=(
        replace(MODEL, thresholds=("score >= 9",), include=("*.py",), shape=Shape.REVIEW, schema={"type": "object"}),
        replace(COMMAND, exits=(0,), environment={"A": "b"}, timeout=1.5, temperature=0.5, dispatch="batch"),
    ),
    source="/snapshot",
    thresholds=("critical + high == 0",),
    waves=(1,),
    agents=("a",),
    keep_going=True,
    live=True,
    cache=False,
    markers=(Marker(path="/code/.muster/pending/one", digest="d", files=("b.py",)),),
    left_out=(LeftOut(path="c.bin", why="binary"),),
    limits=Limits(chunk_bytes=2000, overlap_lines=0, total_bytes=3000),
)


def spec(**changes: Any) -> dict[str, Any]:
    return {**stored(SMALL), **changes}


def verifier(**changes: Any) -> dict[str, Any]:
    return spec(verifiers=[{"name": "a", "model": "m", "prompt": "Look.", **changes}])


def command(**changes: Any) -> dict[str, Any]:
    return verifier(model="", prompt="", kind="command", **{"command": ["ruff"], "parser": "ruff", **changes})


@pytest.mark.parametrize("verification", [SMALL, FULL, replace(SMALL, verifiers=shipped().verifiers())])
def test_what_is_stored_is_read_as_the_same(verification: Verification) -> None:
    assert read_spec(json.loads(json.dumps(stored(verification)))) == verification


def test_what_is_as_usual_is_left_out() -> None:
    assert stored(SMALL) == {
        "root": "/code",
        "files": ["src/a.py"],
        "verifiers": [
            {"name": "a", "model": "m", "prompt": "Look.", "thresholds": []},
            {
                "name": "b",
                "wave": 2,
                "kind": "command",
                "command": ["ruff", "{files}"],
                "parser": "ruff",
                "thresholds": [],
            },
        ],
    }


def test_an_agent_that_says_nothing_of_thresholds_has_the_usual_ones() -> None:
    assert read_spec(verifier()).verifiers[0].thresholds == THRESHOLDS
    assert read_spec(verifier(thresholds=[])).verifiers[0].thresholds == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({}, "root is missing; files is missing; verifiers is missing"),
        (spec(rot=1), "rot is unknown"),
        (verifier(nme=1), "verifiers[0].nme is unknown"),
        (spec(limits={"x": 1}), "limits.x is unknown"),
        (spec(left_out=[{"x": 1}]), "left_out[0].x is unknown"),
        (spec(markers=[{"x": 1}]), "markers[0].x is unknown"),
        (spec(files="a.py"), "files must be a list, not 'a.py'"),
        (spec(verifiers=[5]), "verifiers[0] must be an object, not 5"),
        (spec(verifiers={}), "verifiers must be a list, not {}"),
        (verifier(kind="human"), "verifiers[0].kind must be model or command, not 'human'"),
        (verifier(wave="1"), "verifiers[0].wave must be a whole number, not '1'"),
        (spec(keep_going=1), "keep_going must be true or false, not 1"),
        (spec(verifiers=[]), "verifiers: at least one"),
        (
            spec(verifiers=stored(SMALL)["verifiers"] * 2),
            "a: duplicate name; b: duplicate name",
        ),
        (spec(root="code"), "root: 'code' must be an absolute path"),
        (spec(source="code"), "source: 'code' must be an absolute path"),
        (spec(files=["/etc/passwd"]), "files: '/etc/passwd' must be a path below the root"),
        (spec(files=["a/../../b"]), "files: 'a/../../b' must be a path below the root"),
        (spec(files=["./a"]), "files: './a' must be a path below the root"),
        (spec(files=[""]), "files: '' must be a path below the root"),
        (spec(files=["a\0"]), "must be a path below the root"),
        (spec(files=["a", "a"]), "files: a path is listed twice"),
        (spec(markers=[{"path": "x", "digest": "", "files": []}]), "markers: 'x' must be an absolute path"),
        (
            spec(markers=[{"path": "/x", "digest": "", "files": ["../y"]}]),
            "files: '../y' must be a path below the root",
        ),
        (spec(waves=[1, 3]), "waves: unknown wave 3"),
        (spec(agents=["z"]), "agents: unknown agent 'z'"),
        (spec(thresholds=["critical"]), "thresholds: 'critical' is not a valid threshold: at character 1"),
        (verifier(thresholds=["x == 0"]), "a: thresholds: 'x == 0' is not a valid threshold"),
        (verifier(wave=0), "a: wave: must be at least 1"),
        (verifier(name="a/b"), "a/b: the name of an agent has only letters"),
        (verifier(name=""), "a verifier without a name: the name of an agent"),
        (verifier(include=["/x"]), "a: a glob matches paths below the root"),
        (verifier(prompt=" "), "a: prompt: missing"),
        (verifier(model=""), "a: model: missing"),
        (verifier(dispatch="fast"), "a: dispatch: must be live, flex or batch"),
        (verifier(max_tokens=0), "a: max_tokens: must be at least 1"),
        (verifier(schema={"type": 5}), "a: schema: not a valid JSON Schema"),
        (verifier(command=["x"]), "a: command: only for agents of the kind command"),
        (command(command=[]), "a: command: needs at least one item"),
        (command(command=["{files}"]), "a: command: must begin with a program"),
        (command(command=["a\0"]), "a: command: contains a NUL character"),
        (command(parser="guess"), "a: parser: must be one of ruff, mypy"),
        (command(exits=[]), "a: exits: at least one"),
        (command(timeout=0), "a: timeout: must be more than 0"),
        (spec(limits={"chunk_bytes": 1}), "limits: chunk_bytes must be at least 1000"),
        (spec(limits={"total_bytes": 0}), "limits: overlap_lines must be at least 0, and total_bytes at least 1"),
    ],
)
def test_a_spec_that_is_none_is_refused(given: Any, message: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_spec(given)
    assert caught.value.message.startswith("not a valid spec of a verification: ")
    assert message in caught.value.message


def test_many_flaws_are_one_error_of_bounded_length() -> None:
    with pytest.raises(BadArgument, match=r"; and 980 more$"):
        read_spec(spec(files=[f"../{index}" for index in range(1000)]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=3), below, max_size=2),
    max_leaves=4,
)


@given(
    key=st.sampled_from(list(stored(FULL))),
    inner=st.sampled_from(list(stored(FULL)["verifiers"][0])),
    value=json_values,
)
def test_whatever_is_given_is_read_or_refused(key: str, inner: str, value: Any) -> None:
    first = {**stored(FULL)["verifiers"][0], inner: value}
    for changed in ({key: value}, {"verifiers": [first, stored(FULL)["verifiers"][1]]}):
        try:
            found = read_spec({**stored(FULL), **changed})
        except BadArgument:
            continue
        assert read_spec(stored(found)) == found
