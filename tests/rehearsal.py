"""The rehearsal server in a process that is forked from the loaded one: a start that costs a tenth."""

import os
from collections.abc import Sequence

from muster.testing.sim import RehearsalProcess, ServerProcess

from . import forkserver


class ForkedRehearsal(RehearsalProcess):
    """What a `RehearsalProcess` is, but for its start; it ends with the process that started it as well."""

    def _begin(self, arguments: Sequence[str]) -> ServerProcess:
        folder, environment = forkserver.ROOT, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return forkserver.Forked(
            "muster.sim", list(arguments), folder=folder, environment=environment, shows_errors=True
        )
