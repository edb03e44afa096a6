"""`muster init | schema | doctor | store`: what belongs to a project and its store."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import OutputOptions, answer, fail_with

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster


def init(
    manner: OutputOptions,
    name: Annotated[str, Argument(metavar="NAME", help="Of the folder, and of what is tested: kebab-case.")],
    kind: Annotated[str, Option("--kind", metavar="KIND", help="What to make: suite or verify.")] = "suite",
) -> None:
    """Make a folder with something to begin with: a small suite, or the verification agents that are shipped."""
    from muster.app.validation import starter

    files = _write(Path(name), starter(kind, name))
    next_steps = (f"muster validate {name}", _first_use(kind, name))
    answer(
        manner,
        {"folder": name, "kind": kind, "files": files},
        lambda console: console.print("\n".join([*files, "next: " + "   ·   ".join(next_steps)])),
    )


def _first_use(kind: str, name: str) -> str:
    if kind == "verify":
        return f"muster verify --agents {name}/verify.yaml --changed"
    return f"muster run {name} --agent sim/echo"


def _write(folder: Path, files: Mapping[str, str]) -> list[str]:
    from muster.domain.errors import BadArgument

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


SUITE, VERIFY, TOML = "suite", "verify", "toml"


def schema(
    manner: OutputOptions,
    what: Annotated[str, Argument(metavar="suite|verify|toml", help="A suite, verify.yaml, or muster.toml.")],
) -> None:
    """Print a JSON Schema for editors, made from what this version reads."""
    import json

    from muster.domain.errors import BadArgument

    if what not in (SUITE, VERIFY, TOML):
        raise BadArgument(f"there is no schema {what!r}", suggestions=(SUITE, VERIFY, TOML))
    found = _made(what)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    answer(manner, found, lambda console: console.print(text, soft_wrap=True))


def _made(what: str) -> dict[str, object]:
    from muster.app.editor_schemas import suite_schema, verify_schema
    from muster.settings.schema import toml_schema

    return {SUITE: suite_schema, VERIFY: verify_schema, TOML: toml_schema}[what]()


MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "broken": ("✗", "red")}


def doctor(manner: OutputOptions) -> int:
    """Say what is fine and what is not; exit 3 when broken."""
    import asyncio

    from muster.app.doctor import Diagnosis, examine
    from muster.app.views.doctor import doctor_view
    from muster.cli.terminal.output import clean

    report = asyncio.run(examine(manner.home))
    findings, broken, data = report.all, report.broken, doctor_view(report)

    def tell(console: "Console") -> None:
        for finding in findings:
            console.print(_line(finding), soft_wrap=True)
            for suggestion in finding.suggestions:
                console.print(f"{'':15}{suggestion}", soft_wrap=True)
        console.print("usable" if not broken else f"{len(broken)} of {len(findings)} checks failed")

    def _line(finding: Diagnosis) -> "object":
        from rich.text import Text

        mark, colour = MARKS[finding.state]
        return Text.assemble((f"{mark} ", colour), f"{finding.subject:<12} {clean(finding.words)}")

    if manner.json and broken:
        told = {"code": "configuration", "message": broken[0].words, "suggestions": list(broken[0].suggestions)}
        return fail_with(manner, told, 3, data)
    answer(manner, data, tell)
    return 3 if broken else 0


app = group("Look at the store, and give its free space back.")


@command(app, "info")
def info(manner: OutputOptions) -> None:
    """Say where the store is, how large, and whether it is sound."""

    async def work(muster: "Muster") -> Mapping[str, Any]:
        return await muster.store.info()

    found = with_muster(manner, work, sweep=False)
    if found["check"] != "ok":
        from muster.domain.errors import StoreFailed

        remedy = "restore it from a copy, or move it away to start anew"
        raise StoreFailed(f"the store {found['path']} is damaged: {found['check']}", suggestions=(remedy,))

    def tell(console: "Console") -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for name, value in found.items():
            table.add_row(name.replace("_", " "), f"{value:,}" if name.endswith("bytes") else str(value))
        console.print(table)

    answer(manner, dict(found), tell)


@command(app, "vacuum")
def vacuum(manner: OutputOptions) -> None:
    """Give free space back to the disk; refused while runs are driven."""

    async def shrink(muster: "Muster") -> int:
        before = await muster.store.info()
        await muster.store.vacuum()
        return _size(before)

    async def measure(muster: "Muster") -> int:
        return _size(await muster.store.info())

    before = with_muster(manner, shrink, sweep=False, create=True)
    after = with_muster(manner, measure, sweep=False)  # opened anew: closing moves what waits into the file
    data = {"bytes_before": before, "bytes_after": after}
    answer(manner, data, lambda console: console.print(f"{before:,} bytes before, {after:,} bytes now"))


def _size(info: Mapping[str, Any]) -> int:
    return int(info["bytes"]) + int(info["wal_bytes"])
