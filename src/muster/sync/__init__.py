"""Muster for scripts and notebooks: the names of `muster`, for code that is not async.

    with muster.sync.open() as m:
        print(m.ask("sim/echo", "hello").text)

Everything happens on one event loop in a thread of its own, so it also works where a loop runs already, as in Jupyter.
Workloads are async functions here too. Callbacks are called in that thread.
"""

from typing import Any

import muster
from muster.app import open_muster
from muster.app.doctor import examine
from muster.app.project.diagnosis import DoctorReport
from muster.sync.loop import background_loop
from muster.sync.surface import KINDS, Session, blocking, shown


def open(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  # the same name as muster.open
    """Open a Muster, as `muster.open` does; close it with `with`, or with `close`."""
    loop, opening = background_loop(), open_muster(*args, **kwargs)
    return shown(loop.run(opening.__aenter__()), Session(loop, opening))


def doctor(*args: Any, **kwargs: Any) -> DoctorReport:
    """Make every check that can be made, as `muster.doctor` does."""
    return background_loop().run(examine(*args, **kwargs))


def __getattr__(name: str) -> Any:
    """Return a name of `muster`; those of parts, such as `RunHandle`, are the classes that wait."""
    if name.startswith("_"):
        raise AttributeError(f"module 'muster.sync' has no attribute {name!r}")
    found = getattr(muster, name)
    return blocking(found) if KINDS.get(name) == getattr(found, "__module__", "") else found


def __dir__() -> list[str]:
    """Return the public names, which are those of `muster`."""
    return dir(muster)
