"""Works with trees in a process of its own: `python -m tests.git.program CODE FOLDER [ARGUMENT…]`."""

import asyncio
import os
import sys
from pathlib import Path

from muster.domain.isolation import Isolation
from muster.git.worktrees import Worktrees


def main(code: str, folder: str) -> None:
    """Run some code as the body of a coroutine; `trees` and `sys.argv` are there."""
    names = {"asyncio": asyncio, "os": os, "sys": sys, "Path": Path, "Isolation": Isolation}
    names["trees"] = Worktrees(Path(folder), environment=os.environ)
    exec(f"async def work():\n    {code}", names)
    asyncio.run(names["work"]())  # type: ignore[operator]


if __name__ == "__main__":
    sys.argv = [sys.argv[0], *sys.argv[2:], sys.argv[1]]
    main(sys.argv[-1], sys.argv[1])
