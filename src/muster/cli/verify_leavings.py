"""What a verification leaves behind whatever it came to: a report for each wave, and lines in the log of the day."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from muster.reports.waves.log import append_log, log_lines
from muster.reports.waves.run import WavesRun
from muster.reports.waves.summary import VerifyReport
from muster.reports.waves.wave_report import wave_file_name, write_wave
from muster.reports.writing import write_file

if TYPE_CHECKING:
    from muster.app.verify_office import Whereabouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Leavings:
    """Where what was left behind lies."""

    reports: tuple[Path, ...]
    log: Path

    def json(self) -> dict[str, Any]:
        """Give the places as JSON."""
        return {"reports": [str(path) for path in self.reports], "log": str(self.log)}


async def leave_behind(places: "Whereabouts", waves: WavesRun, report: VerifyReport) -> Leavings:
    """Write what is not there yet; to do it twice changes nothing."""
    written = [await _wave(places.reports, waves, report, wave.wave) for wave in report.waves]
    return Leavings(reports=tuple(written), log=append_log(places.log, log_lines(waves, report)))


async def _wave(folder: Path, waves: WavesRun, report: VerifyReport, wave: int) -> Path:
    async def write(out: TextIO) -> None:
        await write_wave(report, wave, out)

    path = folder / wave_file_name(waves.run, wave)
    if not path.exists():
        await write_file(path, write)
    return path
