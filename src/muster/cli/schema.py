"""`muster schema`: JSON Schemas with which editors check and complete the files that people write."""

from typing import Annotated

from muster.cli.frame import command
from muster.cli.line import Argument, Group
from muster.cli.manner import Manner
from muster.cli.speech import answer

SUITE, VERIFY, TOML = "suite", "verify", "toml"


def register(app: Group) -> None:
    """Add the command."""
    command(app, "schema")(schema)


def schema(
    manner: Manner,
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
