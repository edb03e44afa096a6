"""Secrets in files: nobody is sent them, and no store, journal or report has them."""

import json
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from muster.verify.reports.formats import WRITERS, report_of
from muster.verify.reports.run import open_waves_run
from tests.suites.stage import playing
from tests.verify.stage import a_checker, a_model, a_report, said, stage

KEY = "sk-ant-api03-" + "Zx9Qw7Er5Ty3" * 4
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
FILE = f"import os\n\nKEY = '{KEY}'\nTOKEN = '{TOKEN}'\n\n\ndef go():\n    os.system(KEY)\n"


@pytest.mark.parametrize("how", ["live", "batch"])
async def test_a_secret_in_a_file_is_nowhere_afterwards(tmp_path: Path, how: str) -> None:
    """The model finds what it is to find only when it was shown a mark in the place of the secret."""
    leak = playing({"text": "KEY = '.redacted:", "answer": a_report(said(line=8, finding="the shell gets the key"))})
    text = "for n, line in enumerate(open('a.py'), 1): 'Zx9' in line and print(f'a.py:{n}: a secret: {line}')\nexit(1)"
    checker = a_checker("lint", text, thresholds=())
    async with stage(tmp_path, leak, files={"a.py": FILE}) as s:
        run = await s.verify(a_model("auditor", thresholds=()), checker, how=how)
        assert not run.result["passed"]  # a secret in code is a finding, whatever anybody says of it
        (auditor,) = [one for one in await s.calls(run) if one.key.startswith("wave/1/auditor")]
        asked = json.dumps(msgspec.to_builtins(auditor.request))
        assert "8|     os.system(KEY)" in asked  # lines are where they were
        report = await s.report(run)
        assert (report.redactions, len(report.merged)) == (2, 4)
        waves = await open_waves_run(s.muster._backend.store, run)
        out = StringIO()
        for kind in WRITERS:
            await report_of(waves, report).write(kind, out)
        told = [out.getvalue().encode()]
        told += [msgspec.json.encode(entry) async for entry in s.muster._backend.store.archive.entries(run.id)]
        told += [msgspec.json.encode(event) for event in await s.muster._backend.store.events.read(run.id, 0, 1000)]
    told += [path.read_bytes() for path in (tmp_path / ".muster").rglob("*") if path.is_file()]
    assert len(told) > 10
    for secret in (KEY.encode(), TOKEN.encode()):
        assert not [one[:200] for one in told if secret in one]
