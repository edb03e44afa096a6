"""Who writes the answer of a council: a moderator that does nothing else, a member, or a person."""

import json
import sys
from pathlib import Path

import pytest

from muster.councils.rules.outcome import Synthesis
from muster.councils.rules.values import CouncilMember
from muster.councils.spec import CouncilSpec
from muster.domain.errors import BadArgument
from tests.councils.home import CouncilHome, council_home, declared, program, spec_of

AGENTS = {"ada": program(), "bob": program(answer="42 too"), "cyd": program(answer="41", word="41")}
ANSWER = {"text": "It is 42; one says 41.", "dissent": [{"number": 1, "passage": "one says 41."}]}
MORE = '[agents.mod]\nkind = "scripted"\nscript = "mod.yaml"\n[agents.me]\nkind = "human"\n'


async def written_by_a_person(home: CouncilHome, spec: CouncilSpec, *answers: str) -> Synthesis | None:
    """Hold a council whose moderator is a person that gives these answers one after the other."""
    handle, said = await home.muster.councils.start(spec), iter(answers)
    async for event in handle.events():
        if event.kind == "call.asked":
            await home.muster.runs.answer(handle.id, next(said), key=str(event.data["key"]))
    assert not list(said)
    return (await home.muster.councils.result(handle.id)).synthesis


async def test_a_moderator_writes_the_answer_and_does_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mod.yaml").write_text(json.dumps({"otherwise": json.dumps(ANSWER)}), encoding="utf-8")
    moderator = CouncilMember(name="mod", role="moderator", persona="You write short sentences.")
    async with council_home(tmp_path, toml=declared(AGENTS, MORE)) as home:
        run = await home.hold(spec_of(*AGENTS, rounds=2, min_rounds=2, moderator=moderator))
        calls = [entry for entry in await home.calls(run) if entry.agent == "mod"]
        assert [entry.key for entry in calls] == ["synthesis"]
        assert str(calls[0].request["system"]).endswith("You write short sentences.")
        found = await home.muster.councils.result(run.id)
        assert found.synthesis == Synthesis(agent="mod", text=str(ANSWER["text"]), kept=("cyd",))
        assert [len(one.proposals) for one in found.result.rounds] == [3, 3]


async def test_an_answer_that_is_no_json_is_repaired_once_too(tmp_path: Path) -> None:
    code = (
        f"import sys; print({json.dumps(json.dumps(ANSWER))} if 'cannot be used' in sys.stdin.read() else 'It is 42.')"
    )
    more = f'[agents.mod]\nkind = "program"\nmode = "plain"\ncommand = {json.dumps([sys.executable, "-c", code])}\n'
    async with council_home(tmp_path, toml=declared(AGENTS, more)) as home:
        found = (await home.outcome(spec_of(*AGENTS, rounds=1, moderator=CouncilMember(name="mod")))).synthesis
        assert found == Synthesis(agent="mod", text=str(ANSWER["text"]), kept=("cyd",))


async def test_the_budget_of_whoever_writes_the_answer_holds_for_it_too(tmp_path: Path) -> None:
    agents = {name: program("paid", answer=f"42 by {name}") for name in ("ada", "bob")}
    more = f'[agents.mod]\nkind = "program"\nmode = "plain"\ncommand = {json.dumps(["cat"])}\nbudget_usd = 0.05\n'
    async with council_home(tmp_path, toml=declared(agents, more, each="budget_usd = 0.01\n")) as home:
        moderator = CouncilMember(name="mod", budget_usd=0.04)
        found = await home.outcome(spec_of(*agents, rounds=1, moderator=moderator))
        assert found.synthesis is not None
        assert "budget of mod does not cover this call: $0.00 of $0.04" in found.synthesis.flaw


async def test_a_person_who_moderates_marks_the_dissent(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(AGENTS, MORE)) as home:
        spec = home.muster.councils.spec("q", AGENTS, rounds=1, synthesis="me")
        found = await written_by_a_person(home, spec, "It is 42.", "It is 42. One does not agree [1].")
        assert found == Synthesis(agent="me", text="It is 42. One does not agree [1].", kept=("cyd",))


async def test_a_person_who_moderates_may_abstain(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(AGENTS, MORE)) as home:
        spec = home.muster.councils.spec("q", AGENTS, rounds=1, synthesis="me")
        found = await written_by_a_person(home, spec, "skip: no time")
        assert found == Synthesis(agent="me", flaw="me abstains: no time")


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"synthesis": "ada"}, "'ada' cannot write the answer: it is a program of the exec protocol"),
        ({"baseline": "me"}, "the baseline 'me' is a person"),
    ],
)
async def test_who_cannot_do_its_part_is_refused_before_anything_is_stored(
    tmp_path: Path, chosen: dict[str, str], words: str
) -> None:
    async with council_home(tmp_path, toml=declared(AGENTS, MORE)) as home:
        spec = home.muster.councils.spec("q", AGENTS, **chosen)  # type: ignore[arg-type]
        with pytest.raises(BadArgument, match=words):
            await home.muster.councils.start(spec)
        assert not await home.muster.runs.list()


async def test_nobody_weighs_a_baseline_of_its_own(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(AGENTS)) as home:
        found = (await home.outcome(spec_of(*AGENTS, rounds=1, baseline="cyd"))).baseline
        assert found is not None
        assert found.score is not None
        assert len({cell.evaluator for cell in found.score.contributions} & {"ada", "bob"}) == 1
        assert "cyd" not in {cell.evaluator for cell in found.score.contributions}
