"""References of users over a network: to runs of their own, and to no file."""

from pathlib import Path

import pytest

import muster
from muster.domain.errors import NotFound
from muster.domain.run import User
from tests.api.server import SUITE


async def test_a_user_takes_answers_of_no_other_user_and_of_no_file(tmp_path: Path) -> None:
    suite = tmp_path / "cases.yaml"
    suite.write_text(SUITE, encoding="utf-8")
    async with muster.open(tmp_path / ".muster") as m:
        owner, other = (m.acting_for(User(name=name, sees_all=False)) for name in ("owner", "other"))
        choice = muster.SuiteChoice(paths=(str(suite),), agents=("sim/echo",))
        run = await (await owner.suites.start(await owner.suites.spec(choice))).run()
        exported = tmp_path / "run.jsonl"
        await m.runs.export(run.id, exported)
        assert (await owner.suites.source(reuse=run.id)).run is not None
        for reference in (run.id, str(exported)):
            for named in ({"reuse": reference}, {"replay": reference}):
                with pytest.raises(NotFound) as refused:
                    await other.suites.source(**named)
                assert "file" not in str(refused.value)
