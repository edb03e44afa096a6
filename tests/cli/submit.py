"""`python -m tests.cli.submit [WORKLOAD, SPEC, OPTIONS]`: stores a run for the workers and prints its id."""

import asyncio
import json
import sys

import muster


async def main() -> None:
    workload, spec, options = json.loads(sys.argv[1])
    async with muster.open() as opened:
        print((await opened.submit(workload, spec, **options)).id)


if __name__ == "__main__":
    asyncio.run(main())
