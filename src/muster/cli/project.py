"""`muster init | schema`: what belongs to a project."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.app.editor_schemas import suite_schema, verify_schema
from muster.app.validation import starter
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import CommonOptions, answer
from muster.domain.errors import BadArgument
from muster.settings.schema import toml_schema

if TYPE_CHECKING:
    pass

SUITE, VERIFY, TOML = "suite", "verify", "toml"


def init(
    common: CommonOptions,
    name: Annotated[str, Argument(metavar="NAME", help="The name of the folder and the suite, in kebab-case.")],
    kind: Annotated[str, Option("--kind", values=(SUITE, VERIFY), help="The kind of folder.")] = "suite",
) -> None:
    """Create a folder with a small suite, or with the included verification agents."""
    files = _write(Path(name), starter(kind, name))
    next_steps = (f"muster validate {name}", _first_use(kind, name))
    answer(
        common,
        {"folder": name, "kind": kind, "files": files},
        lambda console: console.print("\n".join([*files, "next: " + "   ·   ".join(next_steps)])),
    )


def _first_use(kind: str, name: str) -> str:
    if kind == "verify":
        return f"muster verify --agents {name}/verify.yaml --changed"
    return f"muster run {name} --agent sim/echo"


def _write(folder: Path, files: Mapping[str, str]) -> list[str]:
    try:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        remedy = "choose another name"
        raise BadArgument(f"there is a {folder} already; nothing was written", suggestions=(remedy,)) from None
    except OSError as error:
        raise BadArgument(f"{folder} cannot be written: {error.strerror}") from error
    return [(folder / name).as_posix() for name in files]


def schema(
    common: CommonOptions,
    what: Annotated[str, Argument(values=(SUITE, VERIFY, TOML), help="A suite, verify.yaml, or muster.toml.")],
) -> None:
    """Print a JSON Schema for editors."""
    if what not in (SUITE, VERIFY, TOML):
        raise BadArgument(f"there is no schema {what!r}", suggestions=(SUITE, VERIFY, TOML))
    found = _made(what)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    answer(common, found, lambda console: console.print(text, soft_wrap=True))


def _made(what: str) -> dict[str, object]:
    return {SUITE: suite_schema, VERIFY: verify_schema, TOML: toml_schema}[what]()
