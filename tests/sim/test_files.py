"""Scripts and faults as people write them; a mistake is named."""

from pathlib import Path
from typing import Any

import pytest

from muster.domain.call import Message, Role, Stop, ToolCall
from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.script import ECHO, Line, Rule, Script
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from muster.sim.files import load_faults, load_script, read_faults, read_script

SCRIPT = """
rules:
  - {model: "claude-*", text: "^hi", turn: 1, answer: "Hello, {text}"}
  - text: weather
    answer: {text: Look, tool_calls: [{name: weather, arguments: {city: Bern}}]}
  - {text: bad, answer: {text: "No.", stop: refused}}
otherwise: Hm.
"""


def test_a_script_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    use = ToolCall(id="", name="weather", arguments={"city": "Bern"})
    assert load_script(path) == Script(
        rules=(
            Rule(line=Line(text="Hello, {text}"), model="claude-*", text="^hi", turn=1),
            Rule(line=Line(text="Look", tool_calls=(use,), stop=Stop.TOOL_USE), text="weather"),
            Rule(line=Line(text="No.", stop=Stop.REFUSED), text="bad"),
        ),
        otherwise=Line(text="Hm."),
    )


def test_a_script_speaks() -> None:
    script = read_script({"rules": [{"text": "(?i)hi", "answer": "Hello, {text}"}]})
    assert script.answer("m", [Message(role=Role.USER, text="Hi")], 100).text == "Hello, Hi"
    assert script.otherwise == ECHO


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("faults.json", '{"seed": 1, "rates": {"429": 0.1}, "script": [{"fault": "500", "nth": 2}]}'),
        ("faults.yaml", "seed: 1\nrates: {429: 0.1}\nscript: [{fault: 500, nth: 2}]"),
        ("faults.toml", 'seed = 1\n[rates]\n429 = 0.1\n[[script]]\nfault = "500"\nnth = 2'),
    ],
)
def test_faults_are_read_from_every_format(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert load_faults(path) == Faults(
        seed=1,
        rates=((Fault(kind=FaultKind.RATE_LIMITED), 0.1),),
        script=(ScriptedFault(fault=Fault(kind=FaultKind.BROKEN), nth=2),),
    )


def test_what_a_cue_leaves_out_comes_from_the_whole() -> None:
    faults = read_faults(
        {
            "retry_after": 1,
            "counted": False,
            "gap_ms": 5,
            "rates": {"timeout": 0.1},
            "script": [
                {"fault": "429", "retry_after": 604800},
                {"fault": "timeout", "counted": True, "times": "always"},
            ],
        }
    )
    assert faults.rates[0][0] == Fault(kind=FaultKind.TIMEOUT, retry_after=1, counted=False, gap_ms=5)
    assert faults.script[0].fault.retry_after == 604800
    assert faults.script[1].fault.paid
    assert faults.script[1].times is None


def test_a_fault_says_its_operation_or_is_where_it_can_be() -> None:
    faults = read_faults(
        {
            "looks": 3,
            "rates": {500: 0.9, "batch_create/500": 0.8, "member/529": 0.5, "missing": 0.5, "expiry": 1},
            "script": [
                {"fault": "truncated"},
                {"fault": "truncated", "op": "member", "text": "x", "model": "y"},
                {"fault": "late_404", "looks": 2},
                {"fault": 404, "op": "file_content"},
            ],
        }
    )
    assert {fault.name: rate for fault, rate in faults.rates} == {
        "500": 0.9,
        "batch_create/500": 0.8,
        "member/529": 0.5,
        "member/missing": 0.5,
        "batch/expiry": 1,
    }
    assert [cue.fault.name for cue in faults.script] == [
        "truncated",
        "member/truncated",
        "batch/late_404",
        "file_content/404",
    ]
    assert [cue.fault.looks for cue in faults.script] == [3, 3, 2, 3]


@pytest.mark.parametrize(
    ("mapping", "names"),
    [
        ([], "faults"),
        ({"sead": 1}, "sead"),
        ({"seed": "x"}, "faults.seed"),
        ({"rates": {"418": 0.1}}, "faults.rates"),
        ({"rates": {"429": 1.1}}, "faults.rates.429"),
        ({"rates": {"429": 0.6, "500": 0.6}}, "faults.rates"),
        ({"capacity": 0}, "faults.capacity"),
        ({"script": {}}, "faults.script"),
        ({"script": ["429"]}, "faults.script[0]"),
        ({"script": [{"nth": 1}]}, "fault"),
        ({"script": [{"fault": "429", "nth": 0}]}, "faults.script[0].nth"),
        ({"script": [{"fault": "429", "times": "often"}]}, "faults.script[0].times"),
        ({"script": [{"fault": "429", "text": "("}]}, "faults.script[0].text"),
        ({"script": [{"fault": "429", "retry_after": -1}]}, "faults.script[0].retry_after"),
        ({"script": [{"fault": "oops"}]}, "faults.script[0].fault"),
        ({"script": [{"fault": "500", "op": "nowhere"}]}, "faults.script[0].op"),
        ({"script": [{"fault": "expiry", "op": "live"}]}, "expiry is not a fault of live"),
        ({"script": [{"fault": "timeout", "op": "member"}]}, "timeout is not a fault of member"),
        ({"script": [{"fault": "expiry", "text": "x"}]}, "batch has no text and no model"),
        ({"script": [{"fault": "500", "op": "batch_list", "model": "x"}]}, "batch_list has no text and no model"),
        ({"script": [{"fault": "late_404", "looks": 0}]}, "faults.script[0].looks"),
        ({"rates": {"nowhere/429": 0.1}}, "faults.rates.nowhere/429"),
        ({"rates": {"member/timeout": 0.1}}, "timeout is not a fault of member"),
        ({"rates": {"member/500": 0.6, "missing": 0.6}}, "the rates of member"),
        ({"rates": {"batch_list/500": -1}}, "faults.rates.batch_list/500"),
    ],
)
def test_a_wrong_field_of_faults_is_named(mapping: Any, names: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_faults(mapping)
    assert names in caught.value.message


@pytest.mark.parametrize(
    ("mapping", "names"),
    [
        ("echo", "script"),
        ({"rule": []}, "rule"),
        ({"rules": [{}]}, "answer"),
        ({"rules": [{"answer": 5}]}, "script.rules[0].answer"),
        ({"rules": [{"answer": "x", "turn": 0}]}, "script.rules[0].turn"),
        ({"rules": [{"answer": "x", "text": "["}]}, "script.rules[0].text"),
        ({"otherwise": {"stop": "tired"}}, "script.otherwise.stop"),
        ({"otherwise": {"tool_calls": [{}]}}, "script.otherwise.tool_calls[0]"),
    ],
)
def test_a_wrong_field_of_a_script_is_named(mapping: Any, names: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_script(mapping)
    assert names in caught.value.message


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("f.yaml", "rates: [", "f.yaml:1:"),
        ("f.json", '{"rates": }', "f.json:1:"),
        ("f.toml", "rates = \n", "f.toml:1:9: "),
        ("f.toml", "rates = [1", "f.toml:1:11: "),
        ("f.yaml", "rates: {429: 7}", "faults.rates"),
        ("f.yaml", "", "faults"),
    ],
)
def test_a_file_that_does_not_do_is_named_with_its_place(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadFile) as caught:
        load_faults(path)
    assert says in caught.value.message
    assert str(path) in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no such file: .*none\.yaml"):
        load_script(tmp_path / "none.yaml")
