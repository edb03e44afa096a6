"""Signed evidence of suite runs: keys made, archives written, verified and scored again."""

from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.base.outputs import require_output
from muster.councils.retelling import retell
from muster.domain.errors import BadConfiguration
from muster.suites.evidence.accounts import FigureDifference
from muster.suites.evidence.export import Exported, export_evidence
from muster.suites.evidence.keys import KeyFiles, load_private_key, load_public_key, make_keys
from muster.suites.evidence.rescoring import Difference, Rescoring, rescore
from muster.suites.evidence.verification import ArchiveVerification, verify

if TYPE_CHECKING:
    from muster.suites.reports.run import SuiteRun

__all__ = ["ArchiveVerification", "Difference", "Evidence", "Exported", "FigureDifference", "KeyFiles", "Rescoring"]

KEY_NAME = "evidence.key"


class Evidence:
    """What can be done with signed archives; to verify one needs no store and no network. `Project.evidence`."""

    def __init__(self, home: Path) -> None:
        self._key = home / KEY_NAME

    def make_keys(self, path: str | Path | None = None) -> KeyFiles:
        """Make a key pair for signing, in the home folder if no file is named; existing files are not overwritten."""
        return make_keys(self._key if path is None else Path(path))

    def verify(self, file: str | Path, public_key: str | Path | None = None) -> ArchiveVerification:
        """Return whether an archive is as it was signed; with a key, also whether it was signed with that one."""
        return verify(Path(file), None if public_key is None else load_public_key(Path(public_key)))

    def rescore(
        self, file: str | Path, public_key: str | Path | None = None, *, allow_redacted: bool = False
    ) -> Rescoring:
        """Verify an archive, score its replies again and compare; nobody is asked."""
        key = None if public_key is None else load_public_key(Path(public_key))
        return rescore(Path(file), key, allow_redacted=allow_redacted, retell_council=retell)

    async def export(self, suite: "SuiteRun", output: str | Path, key: str | Path | None = None) -> Exported:
        """Write a signed archive of a suite run; without a key, the one in the home folder signs it."""
        private = self._key if key is None else Path(key)
        if key is None and not private.exists():
            raise BadConfiguration(f"no key to sign with at {private}", suggestions=("muster evidence keygen",))
        require_output(Path(output), inputs=(str(private),))
        return await export_evidence(suite, Path(output), load_private_key(private))
