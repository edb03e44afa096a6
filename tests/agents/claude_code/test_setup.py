"""What Claude Code is set up with: its environment, and the MCP servers it may use."""

import json
import stat
from pathlib import Path
from typing import Any

from muster.agents.claude_code.setup import QUIET, Servers, Setup, with_key, with_subscription
from muster.domain.canonical import Json

NOTES: dict[str, Json] = {"command": "notes", "env": {"TOKEN": "tok-secret-0123"}}


def written(folder: Path, **declared: dict[str, Json]) -> Path:
    servers = Servers(file=folder / "house" / "private" / "mcp.json", declared=declared)
    servers.write_down()
    return servers.file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def scrubbed(text: str, key: str = "", **server: Any) -> str:
    servers = Servers(file=Path("mcp.json"), declared={"notes": server})
    return Setup(folder=Path("/work"), key=key, mcp_servers=servers).scrub(text)


def test_the_file_tells_of_the_servers_that_are_declared_and_of_nothing_else(tmp_path: Path) -> None:
    assert json.loads(written(tmp_path, notes=NOTES).read_bytes()) == {"mcpServers": {"notes": NOTES}}


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = written(tmp_path, notes=NOTES)
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


def test_a_folder_and_a_file_that_others_can_read_are_made_private(tmp_path: Path) -> None:
    file = written(tmp_path, notes=NOTES)
    file.chmod(0o644)
    file.parent.chmod(0o755)
    written(tmp_path, notes=NOTES)
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


def test_a_file_that_says_it_already_is_not_written_again(tmp_path: Path) -> None:
    before = written(tmp_path, notes=NOTES).stat()
    after = written(tmp_path, notes=NOTES).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_content_comes_in_a_new_file_and_leaves_nothing_else_behind(tmp_path: Path) -> None:
    file = written(tmp_path, notes=NOTES)
    with file.open("rb") as before:  # whoever reads it meanwhile reads all of what was there
        written(tmp_path, other={"command": "other"})
        assert json.load(before) == {"mcpServers": {"notes": NOTES}}
    assert json.loads(file.read_bytes()) == {"mcpServers": {"other": {"command": "other"}}}
    assert list(file.parent.iterdir()) == [file]


def test_a_content_of_the_same_length_is_another_all_the_same(tmp_path: Path) -> None:
    written(tmp_path, notes={"command": "aaa"})
    assert b"bbb" in written(tmp_path, notes={"command": "bbb"}).read_bytes()


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    file = written(tmp_path, notes=NOTES)
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    written(tmp_path, notes={"command": "other"})
    assert not file.is_symlink()
    assert json.loads(elsewhere.read_bytes()) == {"mcpServers": {"notes": NOTES}}


def test_a_file_of_servers_that_are_no_longer_declared_goes_away(tmp_path: Path) -> None:
    file = written(tmp_path, notes=NOTES)
    written(tmp_path)
    assert not file.exists()


def test_without_servers_nothing_is_made(tmp_path: Path) -> None:
    written(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_servers_are_told_does_not_show() -> None:
    assert scrubbed("it is tok-secret-0123.", env={"TOKEN": "tok-secret-0123"}) == "it is [secret]."
    assert scrubbed("it is tok-secret-0123.", headers={"X-Key": "tok-secret-0123"}) == "it is [secret]."
    assert "tok-secret" not in repr(Servers(file=Path("mcp.json"), declared={"notes": NOTES}))


def test_of_a_header_the_part_after_its_scheme_does_not_show_either() -> None:
    headers = {"Authorization": "Bearer tok-secret-0123"}
    assert scrubbed("'Bearer tok-secret-0123', tok-secret-0123", headers=headers) == "'[secret]', [secret]"


def test_short_values_are_no_secrets() -> None:
    assert scrubbed("1 of 11 is true", env={"DEBUG": "1", "ON": "true"}) == "1 of 11 is true"


def test_a_secret_that_holds_the_key_goes_as_a_whole() -> None:
    assert scrubbed("x sk-secret-1 y", "sk-secret-1", env={"KEY": "sk-secret-1"}) == "x [key] y"
    assert scrubbed("x pre-sk-secret-1 y", "sk-secret-1", env={"KEY": "pre-sk-secret-1"}) == "x [secret] y"


def test_servers_that_are_told_nothing_have_no_secrets() -> None:
    assert scrubbed("anything", command="notes", env=None, headers=[1], args=["--long-enough"]) == "anything"


HOUSE = Path("/muster/claude/agent-coder")


def test_with_a_key_it_lives_in_a_house_of_its_own() -> None:
    found = with_key({"PATH": "/bin"}, key="k", address=None, home=HOUSE)
    own = {"HOME": str(HOUSE), "CLAUDE_CONFIG_DIR": f"{HOUSE}/.claude", "ANTHROPIC_API_KEY": "k", "PATH": "/bin"}
    assert found == QUIET | own


def test_it_is_told_to_speak_to_the_api_only() -> None:
    assert QUIET["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == QUIET["DISABLE_TELEMETRY"] == "1"
    assert QUIET["DISABLE_ERROR_REPORTING"] == QUIET["DISABLE_AUTOUPDATER"] == "1"


def test_what_is_declared_goes_before_what_is_usual_but_not_before_the_key() -> None:
    child = {"HOME": "/elsewhere", "DISABLE_TELEMETRY": "0", "ANTHROPIC_API_KEY": "another"}
    found = with_key(child, key="k", address="http://127.0.0.1:1", home=HOUSE)
    assert (found["HOME"], found["DISABLE_TELEMETRY"], found["ANTHROPIC_API_KEY"]) == ("/elsewhere", "0", "k")
    assert found["CLAUDE_CONFIG_DIR"] == f"{HOUSE}/.claude"
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


def test_with_a_subscription_it_lives_at_home_and_gets_no_key() -> None:
    found = with_subscription({"ANTHROPIC_API_KEY": "k"}, home="/home/ada", address=None)
    assert found == QUIET | {"HOME": "/home/ada"}


def test_only_what_goes_without_permissions_as_root_is_called_a_sandbox() -> None:
    assert "IS_SANDBOX" not in with_key({}, key="k", address=None, home=HOUSE)
    assert with_key({}, key="k", address=None, home=HOUSE, unguarded=True)["IS_SANDBOX"] == "1"
    assert with_subscription({}, home=None, address=None, unguarded=True)["IS_SANDBOX"] == "1"
