"""Settings: read once, strict, and never showing a secret."""

import os
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadConfiguration, BadFile, exit_code_of
from muster.domain.provider import PROVIDERS
from muster.settings import SECRET_VARIABLES, find_project, load_settings


def write(folder: Path, text: str) -> Path:
    (folder / "muster.toml").write_text(text)
    return folder


def test_nothing_needs_to_be_set(tmp_path: Path) -> None:
    settings = load_settings(folder=tmp_path, environment={})
    assert (settings.database, settings.run_cap, settings.day_cap) == (tmp_path / ".muster/muster.db", None, None)


def test_the_home_comes_from_the_option_then_the_variable_then_the_folder(tmp_path: Path) -> None:
    environment = {"MUSTER_HOME": "/elsewhere"}
    assert load_settings(Path("/given"), folder=tmp_path, environment=environment).home == Path("/given")
    assert load_settings(folder=tmp_path, environment=environment).home == Path("/elsewhere")


def project(tmp_path: Path, *, user: int | None = None, with_store: bool = True) -> str:
    """Return where the project of home/tree/sub/deep is found."""
    deep = tmp_path / "home/tree/sub/deep"
    trusted = os.geteuid() if user is None else user
    found = find_project(deep, top=tmp_path / "home", user=trusted, with_store=with_store)
    return str(found.relative_to(tmp_path))


STORE = ".muster/muster.db"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], "home/tree/sub/deep"),
        ([f"home/tree/{STORE}"], "home/tree"),
        (["home/tree/muster.toml"], "home/tree"),
        ([f"home/tree/{STORE}", "home/tree/sub/muster.toml"], "home/tree/sub"),
        ([f"home/tree/sub/deep/{STORE}", "home/tree/muster.toml"], "home/tree/sub/deep"),
        (["home/tree/.muster/pending/x"], "home/tree/sub/deep"),  # no store yet
        ([f"home/tree/{STORE}", "home/tree/.git/HEAD"], "home/tree"),
        ([f"home/tree/{STORE}", "home/tree/sub/.git/HEAD"], "home/tree/sub/deep"),
        ([f"home/tree/{STORE}", "home/tree/sub/.git"], "home/tree/sub/deep"),  # a worktree
        ([f"home/{STORE}"], "home"),
        ([STORE, "muster.toml"], "home/tree/sub/deep"),  # above the person's home
    ],
)
def test_a_project_is_looked_for_upwards(tmp_path: Path, files: list[str], found: str) -> None:
    (tmp_path / "home/tree/sub/deep").mkdir(parents=True)
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert project(tmp_path) == found


def test_a_store_in_the_home_is_found_from_below_also_where_the_home_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (f"real/{STORE}", "muster.toml"):  # the second is above the home
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "real/w").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link/w")
    for home in ("real", "link", "real/w/.."):
        assert load_settings(environment={"HOME": str(tmp_path / home)}).home == tmp_path / "real/.muster"
    (tmp_path / "real" / STORE).unlink()
    assert load_settings(environment={"HOME": str(tmp_path / "link")}).home == tmp_path / "real/w/.muster"


def test_no_project_is_taken_from_a_folder_that_others_own(tmp_path: Path) -> None:
    (tmp_path / "home/tree/sub/deep").mkdir(parents=True)
    (tmp_path / "home/tree/muster.toml").touch()
    assert project(tmp_path, user=os.geteuid() + 1) == "home/tree/sub/deep"
    (tmp_path / "home/tree").chmod(0o777)  # as in many containers
    assert project(tmp_path) == "home/tree"


def test_where_the_home_is_named_only_the_configuration_is_looked_for(tmp_path: Path) -> None:
    for name in ("home/tree/muster.toml", f"home/tree/sub/deep/{STORE}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert project(tmp_path, with_store=False) == "home/tree"


def test_budgets_are_read_exactly(tmp_path: Path) -> None:
    settings = load_settings(
        folder=write(tmp_path, "[budget]\nrun_usd = 5.00\nday_usd = 0.1\ncall_usd = 0.5\n"), environment={}
    )
    assert (settings.run_cap, settings.day_cap, settings.call_cap) == (5_000_000, 100_000, 500_000)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[agents.a]\nkind = openai\n", ":2:8", "invalid value: write a string in quotes"),
        ("[budget\n", ":1:8", "Expected"),
        ("a = 1\na = 2\n", ":2:6", "Cannot overwrite"),
        ("[budget]\nrun_usd = 5\n[pond]\nslots = 2\n", ":3:1", "unknown key 'pond'"),
        ('[agents.a]\nkind = "openai"\nmodle = "x"\n', ":3:1", "agents.a: unknown key 'modle'; did you mean 'model'?"),
        ('[agents.a]\nkind = "telepathy"\n', ":2:1", "agents.a.kind"),
        ('[agents.a]\nkind = "openai"\napi_key = "sk-1"\n', ":3:1", "key_env"),
        ('[agents.a]\nkind = "openai"\nmax_tokens = 0\n', ":3:1", "agents.a.max_tokens"),
        ("[budget]\nrun_usd = [1", ":2:13", "Unclosed array"),
        ("[budget]\nrun_usd =", ":2:10", "invalid value: "),
        ("[budget]\r\nrun_usd = [1\r\n", ":3:1", "Unclosed array"),
        ("[budget]\nrun_usd = -1\n", ":2:1", "must be more than 0"),
        ("[budget]\nrun_usd = 0\n", ":2:1", "must be more than 0"),
        ('[agents.a]\nkind = "openai"\nprice = { input = -1, output = 1 }\n', ":3:1", "agents.a.price.input"),
        ('[agents.a]\nkind = "openai"\nprice = { input = 1 }\n', ":3:1", "agents.a.price.output: is missing"),
        ('[agents.a]\nkind = "openai"\nmax_tokens = "9"\n', ":3:1", "max_tokens: must be an integer, not a string"),
        ('[agents.a]\nkind = "openai"\ntemperature = nan\n', ":3:1", "temperature: must be a finite number"),
        (
            '[agents.a]\nkind = "program"\ntimeout_secs = inf\n',
            ":3:1",
            "timeout_secs: must be a finite number, not inf",
        ),
        ('[agents.a.b]\nkind = "openai"\n', ":1:1", 'agents.a: missing key "kind"'),
        ('"bud get" = 1\n', ":1:1", "unknown key 'bud get'; did you mean 'budget'?"),
        (
            '[agents.a]\nkind = "program"\nmode = "x"\n',
            ":3:1",
            "agents.a.mode: must be one of exec, plain, chat, not 'x'",
        ),
        ('[agents.a]\nkind = "program"\nworking_dir = 3\n', ":3:1", "agents.a.working_dir: must be a string"),
        (
            '[agents.a]\nkind = "program"\ncommand = ["a", 3]\n',
            ":3:1",
            "agents.a.command: must be a string, not an integer",
        ),
        ('[agents.a]\nkind = "program"\n[agents.a.env]\nB = "1"\nC = 2\n', ":5:1", "agents.a.env.C: must be a string"),
        (
            '[agents.a]\nkind = "claude-code"\nmcp_servers = { m = 1 }\n',
            ":3:1",
            "agents.a.mcp_servers.m: must be a table",
        ),
        ("[agents.a]\nmodel = 'x'\n", ":1:1", 'agents.a: missing key "kind"'),
        ("[agents]\na = 1\n", ":2:1", "agents.a: must be a table"),
        ("agents = 1\n", ":1:1", "agents: must be a table"),
        ("[workloads]\nimport = 'a'\n", ":2:1", "workloads.import: must be a list, not a string"),
        ("budget = 'all'\n", ":1:1", "budget: must be a table, not a string"),
        ("[budget]\nday_usd = inf\n", ":2:1", "budget.day_usd"),
        ("[pool]\nslots = 20\n", ":2:1", "pool.slots: must be between min_slots 1 and max_slots 16, not 20"),
        ("[[slots]]\nname = 'Mine'\n", ":2:1", "'Mine' cannot be the name of a slot"),
        ("[[slots]]\nname = 'slot-3'\n", ":2:1", "'slot-3' cannot be the name of a slot"),
        ("[[slots]]\nname = 'a'\n[[slots]]\nname = 'a'\n", ":2:1", "two slots are called 'a'"),
        ("[[slots]]\nname = 'a'\nrules = 1\n", ":3:1", "unknown key 'rules'"),
    ],
)
def test_a_wrong_file_is_told_with_its_line_and_column(tmp_path: Path, text: str, place: str, said: str) -> None:
    with pytest.raises(BadFile) as caught:
        load_settings(folder=write(tmp_path, text), environment={})
    assert f"muster.toml{place}: " in caught.value.message
    assert said in caught.value.message
    assert exit_code_of(caught.value) == 3
    assert "sk-1" not in caught.value.message


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadFile, match="is not UTF-8"):
        load_settings(folder=tmp_path, environment={})


def test_secrets_are_known_but_not_shown(tmp_path: Path) -> None:
    text = '[agents.a]\nkind = "openai"\nkey_env = "MY_KEY"\n'
    environment = {"OPENAI_API_KEY": "sk-openai-1", "MY_KEY": "sk-mine-1", "OTHER": "x"}
    settings = load_settings(folder=write(tmp_path, text), environment=environment)
    assert set(settings.secrets) == {"sk-openai-1", "sk-mine-1"}
    assert "sk-openai-1" not in repr(settings)
    assert "sk-mine-1" not in repr(settings)


def test_what_programs_are_given_is_secret_by_its_name_or_by_the_password_in_it(tmp_path: Path) -> None:
    text = (
        '[agents.a]\nkind = "program"\ncommand = ["cat"]\n'
        'env = { INLINE_KEY = "inline-0123", MODE = "production" }\n'
        'pass_env = ["MY_TOKEN", "DATABASE_URL", "HOME", "UNSET_TOKEN"]\n'
    )
    environment = {
        "MY_TOKEN": "token-0123",
        "DATABASE_URL": "postgres://me:hunter2secret@db/x",
        "HOME": "/home/somebody",
    }
    settings = load_settings(folder=write(tmp_path, text), environment=environment)
    assert set(settings.secrets) == {
        "inline-0123",
        "token-0123",
        "postgres://me:hunter2secret@db/x",
        "hunter2secret",
    }


def test_a_kill_point_is_read_or_refused(tmp_path: Path) -> None:
    settings = load_settings(folder=tmp_path, environment={"MUSTER_CRASH_AT": "call.opened:3"})
    assert settings.crash_at == ("call.opened", 3)
    with pytest.raises(BadArgument):
        load_settings(folder=tmp_path, environment={"MUSTER_CRASH_AT": "call.opened"})


def test_the_keys_of_all_providers_are_secrets() -> None:
    assert {one.key_variable for one in PROVIDERS.values() if one.key_variable} == set(SECRET_VARIABLES)


TRACES_ON = "[observability]\notel = true\n"


@pytest.mark.parametrize(
    ("text", "environment", "exporter"),
    [
        ("", {}, None),
        (TRACES_ON, {}, "otlp"),
        ("", {"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ("", {"OTEL_TRACES_EXPORTER": "console"}, "console"),
        (TRACES_ON, {"OTEL_TRACES_EXPORTER": "console"}, "console"),
        (TRACES_ON, {"OTEL_TRACES_EXPORTER": "none"}, None),
        (TRACES_ON, {"OTEL_SDK_DISABLED": "true"}, None),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, None),
    ],
)
def test_traces_are_on_by_the_file_or_by_their_own_variable_but_not_by_an_address(
    tmp_path: Path, text: str, environment: dict[str, str], exporter: str | None
) -> None:
    assert load_settings(folder=write(tmp_path, text), environment=environment).trace_exporter == exporter


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")]
)
def test_an_exporter_or_a_protocol_that_is_not_supported_is_refused_by_name(
    tmp_path: Path, name: str, value: str
) -> None:
    settings = load_settings(folder=write(tmp_path, TRACES_ON), environment={name: value})
    with pytest.raises(BadConfiguration, match=f"{name}={value} is not supported"):
        _ = (settings.trace_exporter, settings.trace_protocol)


@pytest.mark.parametrize(("said", "content"), [("", True), ("false", False), ("span_only", True)])
def test_the_variable_decides_about_content_before_the_file_does(tmp_path: Path, said: str, content: bool) -> None:
    environment = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": said}
    folder = write(tmp_path, "[observability]\notel_content = true\n")
    assert load_settings(folder=folder, environment=environment).trace_content is content


def test_the_address_of_a_database_comes_from_the_variable_then_the_file_and_hides_its_password(tmp_path: Path) -> None:
    write(tmp_path, '[store]\nurl = "postgresql://file@db/shop"\n')
    url = "postgresql://me:hunter%402secret@db:5433/shop?sslmode=require"
    given = load_settings(folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
    written = load_settings(folder=tmp_path, environment={})
    assert (given.database_url, written.database_url) == (url, "postgresql://file@db/shop")
    assert given.store_place == "postgresql://me@db:5433/shop"
    assert {url, "hunter%402secret", "hunter@2secret"} <= set(given.secrets)
    assert "hunter" not in repr(given)
    assert given.has_store


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2secret@h1:1,h2:2/shop?target_session_attrs=primary", "postgresql://me@h1:1,h2:2/shop"),
        ("postgres://me:hunter2secret@[::1]:5432,db", "postgresql://me@[::1]:5432,db"),
        ("postgresql:///shop?host=%2Ftmp&password=hunter2secret", "postgresql://localhost/shop"),
        ("postgresql://me:hunter2secret?x@db/shop", "postgresql://me@db/shop"),
    ],
)
def test_every_address_that_libpq_takes_is_shown_without_its_password(tmp_path: Path, url: str, shown: str) -> None:
    settings = load_settings(folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
    assert settings.store_place == shown
    assert any(secret.startswith("hunter2secret") for secret in settings.secrets)


def test_the_password_in_the_environment_is_a_secret_where_the_store_is_a_database(tmp_path: Path) -> None:
    variables = {"PGPASSWORD": "hunter2secret"}
    with_database = {**variables, "MUSTER_DATABASE_URL": "postgresql://me@db/shop"}
    assert load_settings(folder=tmp_path, environment=variables).secrets == ()
    assert load_settings(folder=tmp_path, environment=with_database).secrets == ("hunter2secret",)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hunter2secret@db/x",
        "host=db password=hunter2secret",
        "postgresql://a:1:b",
        "postgresql://me:a@hunter2secret@db/x",
        "postgresql://me:12/hunter2secret@db/x",
        "postgresql://h1:1,h2:70000/x",
    ],
)
def test_an_address_that_is_not_one_of_postgres_is_refused_without_being_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadConfiguration, match="MUSTER_DATABASE_URL is not the address") as refused:
        load_settings(folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
    assert "hunter2secret" not in refused.value.message
