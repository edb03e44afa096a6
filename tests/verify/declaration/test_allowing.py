"""An exception for a secret is put into verify.yaml as one line; nothing else of the file changes."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument
from muster.verify.declaration.declaration import allow, read_declaration, spelled
from muster.verify.declaration.verification import AllowedSecret

AGENTS = "agents:\n- {name: one, kind: command, command: [ruff, check], parser: ruff}  # ours\n"
SECRET = AllowedSecret(file='odd "name" ä.py', line=7, kind="aws_key")
NEW = spelled(SECRET)
OLD = "{file: a.py, line: 1, kind: jwt}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (AGENTS, f"{AGENTS}allow_secrets:\n  - {NEW}\n"),
        (AGENTS.rstrip("\n"), f"{AGENTS}allow_secrets:\n  - {NEW}\n"),
        (f"allow_secrets: []  # none\n{AGENTS}", f"allow_secrets:  # none\n  - {NEW}\n{AGENTS}"),
        (
            f"allow_secrets:\n- {OLD}  # old\n\n# who\n{AGENTS}",
            f"allow_secrets:\n- {OLD}  # old\n- {NEW}\n\n# who\n{AGENTS}",
        ),
        (
            f"{AGENTS}allow_secrets:\n    - file: a.py\n      line: 1\n      kind: jwt\n    # more\n",
            f"{AGENTS}allow_secrets:\n    - file: a.py\n      line: 1\n      kind: jwt\n    - {NEW}\n    # more\n",
        ),
        (AGENTS.replace("\n", "\r\n"), f"{AGENTS}allow_secrets:\n  - {NEW}\n".replace("\n", "\r\n")),
    ],
    ids=["no key", "no last line end", "empty list", "items at the margin", "items in blocks", "carriage returns"],
)
def test_every_line_that_was_there_stays(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "verify.yaml"
    path.write_bytes(before.encode())
    path.chmod(0o640)
    allow(path, [SECRET])
    assert path.read_bytes().decode() == after
    assert read_declaration(path).allow_secrets[-1] == SECRET
    assert (path.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o640, [path])


@pytest.mark.parametrize("text", [f"allow_secrets: [{OLD}]\n{AGENTS}", f"---\n{AGENTS}...\n"], ids=["flow", "ended"])
def test_a_layout_that_cannot_be_kept_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verify.yaml"
    path.write_text(text)
    with pytest.raises(BadArgument) as caught:
        allow(path, [SECRET])
    assert NEW in caught.value.suggestions[0]
    assert (path.read_text(), list(tmp_path.iterdir())) == (text, [path])
