"""Changes that findings propose, made in the files that were verified, as far as they can be made."""

from dataclasses import dataclass
from typing import Any

from muster.app.runs.runs import Runs
from muster.domain.run import Run
from muster.store.base import Store
from muster.text import typed
from muster.verify.fix import Unfixed, fixes_of
from muster.verify.reports.run import open_waves_run
from muster.verify.reports.summary import summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What was changed, and what was not."""

    changed: tuple[str, ...] = ()  # files
    left: tuple[str, ...] = ()  # one line for each change that was not made


async def fix(store: Store, runs: Runs, run: Run) -> Fixed:
    """Make the changes that the findings of a run propose, as far as they can be made."""
    waves = await open_waves_run(store, run)
    sources = {source.path: source async for source in waves.sources()}
    fixes = fixes_of((await summarize(waves)).merged, sources)
    left = [_words(one) for one in fixes.unfixed]
    if not fixes.files:
        return Fixed(left=tuple(left))
    handle = await runs.start("fix", {"root": waves.spec.root, "files": typed.to_builtins(fixes.files)}, runs.options())
    made: Any = await handle.result()
    left += [f"{path}: {why}" for path, why in made["left"].items()]
    return Fixed(changed=tuple(made["changed"]), left=tuple(left))


def _words(one: Unfixed) -> str:
    return f"{one.finding.file}:{one.finding.line}: {one.why}"
