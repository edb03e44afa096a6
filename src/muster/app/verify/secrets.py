"""Exceptions for secrets in verified code: only for one that is found there, and only in a file of the user's."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.app.verify.verifications import declared_in
from muster.domain.errors import BadArgument, NotFound
from muster.git.hook import Installed, install_hook
from muster.git.repository import Git
from muster.settings import Settings
from muster.text.secrets.redaction import Secret
from muster.verify.declaration.declaration import allow, read_declaration
from muster.verify.declaration.verification import AllowedSecret, LeftOut
from muster.verify.sources.source import Source, is_generated, look_into, place_in, secrets_in

__all__ = ["Allowed", "Installed", "allow_secret", "install_hook"]

_PLACE = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]{0,8})")
_NAMED = 10  # lines in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Exceptions that were written."""

    declaration: Path
    secrets: tuple[AllowedSecret, ...]


async def allow_secret(settings: Settings, folder: Path, place: str, agents_file: Path | None = None) -> Allowed:
    """Write an exception for the secrets at FILE:LINE into verify.yaml; raises BadArgument when there is none."""
    name, line = _split(place)
    declaration = await declared_in(settings, folder, agents_file)
    if declaration is None:
        raise NotFound(
            "no verify.yaml found to add the exception to",
            suggestions=("create one with muster init NAME --kind verify",),
        )
    root = await Git(folder).root() or folder
    return await asyncio.to_thread(_allow, declaration, root.resolve(), folder, name, line)


def _allow(declaration: Path, root: Path, folder: Path, name: str, line: int) -> Allowed:
    file, found = _secrets_of(root, folder, name)
    known = read_declaration(declaration).allow_secrets
    places = {(one.line, one.kind) for one in known if one.file == file}
    open_ = [one for one in found if (one.line, one.kind) not in places]
    kinds = dict.fromkeys(secret.kind for secret in open_ if secret.line == line)
    if not kinds:
        raise BadArgument(_nothing_there(file, line, found, open_))
    secrets = tuple(AllowedSecret(file=file, line=line, kind=kind) for kind in kinds)
    allow(declaration, secrets)
    return Allowed(declaration=declaration, secrets=secrets)


def _split(place: str) -> tuple[str, int]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise BadArgument(f"the place must be FILE:LINE, not {place!r}", suggestions=("for example src/app.py:12",))
    return found["file"], int(found["line"])


def _secrets_of(root: Path, folder: Path, name: str) -> tuple[str, Sequence[Secret]]:
    """Read a file that is named from here, or as findings name it: from the root."""
    place = place_in(root, folder / name if (folder / name).exists() else root / name)
    if place is None:
        raise BadArgument(f"{name!r} is not below {root}, the root of this verification")
    if not (root / place).is_file():
        raise BadArgument(f"no such file: {place}")
    found = look_into(root, place)
    if isinstance(found, LeftOut) and not is_generated(found):
        raise BadArgument(f"{place} is not verified: {found.why}")
    return place, found.secrets if isinstance(found, Source) else secrets_in(root, place)


def _nothing_there(file: str, line: int, found: Sequence[Secret], still_open: Sequence[Secret]) -> str:
    if any(secret.line == line for secret in found):
        return f"the secret at {file}:{line} is already allowed"
    lines = list(dict.fromkeys(str(secret.line) for secret in still_open))
    more = ", …" if len(lines) > _NAMED else ""
    where = f"; secrets of this file are at: {', '.join(lines[:_NAMED])}{more}" if lines else ""
    return f"no secret was found at {file}:{line}{where}"
