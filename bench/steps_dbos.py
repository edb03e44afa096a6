"""The same triage with DBOS, which must be installed: `python -m bench.steps_dbos LETTERS FOLDER`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.steps import Letters, finished

letters = Letters(Path(sys.argv[2]))


@DBOS.step()
async def label(letter: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(letters.answer(letter))
    return found


@DBOS.workflow()
async def triage(count: int) -> int:
    room = asyncio.Semaphore(100)  # as many at a time as with Muster

    async def labeled(letter: str) -> dict[str, Any]:
        async with room:
            found: dict[str, Any] = await label(letter)
            return found

    return len(await asyncio.gather(*(labeled(f"letter {one}") for one in range(count))))


async def main(count: int, folder: Path) -> None:
    url = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config=DBOSConfig(name="triage", system_database_url=url, log_level="ERROR"))
    DBOS.launch()  # recovers what a killed process left behind
    with finished(letters):
        with SetWorkflowID("monday"):
            handle = await DBOS.start_workflow_async(triage, count)
        assert await handle.get_result() == count
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
