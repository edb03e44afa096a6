"""Reads the specs of all kinds of work for the first time in many threads at once, in each of many processes.

Each process is forked from one that has loaded every workload and has read no value yet, so that its first use of every
type is still to come. Prints how each process ended that did not end well.
"""

import os
import sys
import threading
from collections.abc import Iterator

from muster.app.kinds import BUILT_IN
from muster.domain.canonical import Json
from muster.engine.workload import REGISTRY, Workloads

THREADS = 8
DIGEST = "0" * 64
BATTLE: dict[str, Json] = {
    "agent": "a",
    "counterpart": "b",
    "goal": "ends",
    "validators": [{"kind": "contains", "text": "done"}],
}
SPECS: dict[str, Json] = {
    "ask": {"agent": "a", "prompt": "hello"},
    "battle": BATTLE,
    "chain": {"chain": {"name": "c", "groups": [[{"name": "s", "agent": "a", "prompt": "go"}]]}},
    "deliberation": {"question": "why?", "members": [{"name": "a"}, {"name": "b"}]},
    "fix": {"root": "/", "files": [{"path": "a", "digest": DIGEST, "edits": [{"line": 1, "end_line": 1}]}]},
    "generate": {"agent": "a", "count": 1, "skill": "sums"},
    "scale": {"battle": BATTLE, "runs": 2, "goals": [{"goal": "ends"}]},
    "suite": {"path": ["cases"], "agents": ["a"]},
    "task": {"prompt": "go"},
    "waves": {"root": "/", "files": ["a"], "verifiers": [{"name": "v", "model": "a", "prompt": "look"}]},
}


def loaded() -> Workloads:
    """Return the registry with every workload of ours."""
    for name, module in ((kind.workload, kind.module) for kind in BUILT_IN):
        REGISTRY.promise(name, module)
        REGISTRY.find(name)
    return REGISTRY


def read_at_once(registry: Workloads) -> list[str]:
    """Read all specs in all threads, each beginning with another; return what went wrong."""
    errors: list[str] = []
    barrier = threading.Barrier(THREADS)
    names = sorted(SPECS)

    def read(first: int) -> None:
        barrier.wait()
        for name in names[first:] + names[:first]:
            try:
                registry.check(name, SPECS[name])
            except Exception as error:
                errors.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=read, args=(place % 2,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def endings(registry: Workloads, processes: int) -> Iterator[str]:
    """Yield how each process ended that did not end well."""
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            sys.setswitchinterval(1e-6)
            errors = read_at_once(registry)
            print(*errors, sep="\n", end="", flush=True)
            os._exit(bool(errors))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            yield f"process {number} ended with {code}"


if __name__ == "__main__":
    for line in endings(loaded(), int(sys.argv[1])):
        print(line, flush=True)
