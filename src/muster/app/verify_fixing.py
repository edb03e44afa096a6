"""Changes that a verification proposed: chosen from its report, and made by a run of their own."""

from dataclasses import dataclass

import msgspec

from muster.app.muster import Muster
from muster.checks.findings.fixing import Fixes, Unfixed, fixes_of
from muster.domain.run import Run
from muster.reports.waves.run import open_waves_run
from muster.reports.waves.summary import summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What was changed, and what was not."""

    changed: tuple[str, ...] = ()  # files
    left: tuple[str, ...] = ()  # one line for each change that was not made


async def fix(muster: Muster, run: Run) -> Fixed:
    """Make the changes that the findings of a run propose, as far as they can be made."""
    waves = await open_waves_run(muster.store, run)
    sources = {source.path: source async for source in waves.sources()}
    fixes = fixes_of((await summarize(waves)).merged, sources)
    left = [_words(one) for one in fixes.unfixed]
    if not fixes.files:
        return Fixed(left=tuple(left))
    made = await _make(muster, waves.spec.root, fixes)
    left += [f"{path}: {why}" for path, why in made["left"].items()]
    return Fixed(changed=tuple(made["changed"]), left=tuple(left))


async def unverified(muster: Muster, run: Run, fixed: Fixed) -> list[str]:
    """Give the files that were changed and that a verification after it did not see."""
    seen = {file.path for file in (await open_waves_run(muster.store, run)).snapshot.files}
    return [path for path in fixed.changed if path not in seen]


async def _make(muster: Muster, root: str, fixes: Fixes) -> dict[str, dict[str, str]]:
    handle = await muster.start("fix", {"root": root, "files": msgspec.to_builtins(fixes.files)})
    found: dict[str, dict[str, str]] = await handle.result()
    return found


def _words(one: Unfixed) -> str:
    return f"{one.finding.file}:{one.finding.line}: {one.why}"
