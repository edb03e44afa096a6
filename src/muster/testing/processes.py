"""A memory for owned processes, for tests of agents that start some."""

from collections.abc import Sequence

from muster.domain.run import OwnedProcess


class RememberedProcesses:
    """Remembers processes as a store does, as long as this process lives."""

    def __init__(self) -> None:
        self.noted: dict[str, OwnedProcess] = {}
        self.seen: list[OwnedProcess] = []  # all that were ever noted

    async def note(self, process: OwnedProcess) -> None:
        """Remember a process."""
        self.noted[process.token] = process
        self.seen.append(process)

    async def forget(self, token: str) -> None:
        """Forget a process that was seen dead."""
        self.noted.pop(token, None)

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Return the processes of a host that nobody has seen dead."""
        return [process for process in self.noted.values() if process.driver.host == host]
