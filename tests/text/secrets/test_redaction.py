"""Secrets are found by their pattern and taken out; other texts stay as they are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.text.secrets.redaction import Redactor, redact

BODY = "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF"
PEM = f"-----BEGIN {{kind}}PRIVATE KEY-----\n{BODY}\n-----END {{kind}}PRIVATE KEY-----"

SECRETS = {
    "sk-ant-api03-AbCdEf0123456789_-xyz": "anthropic_key",
    "sk-proj-Ab12cd34Ef56gh78ij90KL": "openai_key",
    "sk-" + "a1B2" * 12: "openai_key",
    "sk-or-v1-" + "0123456789abcdef" * 4: "openrouter_key",
    "ghp_" + "a1B2" * 9: "github_token",
    "github_pat_11ABCDEFG0_abcdefghijklmnop": "github_token",
    "glpat-abcdefghij0123456789": "gitlab_token",
    "AKIAIOSFODNN7EXAMPLE": "aws_key",
    "AIzaSy" + "a1b2c" * 6 + "xyz": "google_key",
    "xox" + "b-123456789012-abcdefABCDEF": "slack_token",
    "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc": "stripe_key",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N": "jwt",
    PEM.format(kind=""): "private_key",
    PEM.format(kind="OPENSSH "): "private_key",
    PEM.format(kind="").replace("\n", "\\n"): "private_key",
    PEM.format(kind="RSA ")[:100]: "private_key",  # cut off
    "hf_" + "aBcDeFgHiJ" * 4: "huggingface_token",
    "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuv": "sendgrid_key",
}  # fmt: skip

HEX = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"

# What stands before and after the secret stays.
IN_CONTEXT = [
    ("Authorization: Bearer ", "abcdef123456", "", "authorization"),
    ('"authorization": "Basic ', "dXNlcjpwYXNzd29yZA==", '"', "authorization"),
    ("x-api-key: ", "abcdef123", "\n", "api_key_header"),
    ("postgres://me:", "hunter2", "@db.example/x", "url_password"),
    ("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1", "", "assigned_secret"),
    ("client.connect(password='", "Tr0ub4dor&3"[:9] + "xkcd2011abc", "')", "assigned_secret"),
    ('{"text":"line\\n', "sk-ant-api03-AbCdEf0123456789", '"}', "anthropic_key"),
    ('api_key: str = "', HEX, '"', "assigned_secret"),
    ("DEBUG=1\nSECRET_TOKEN=", "abcd1234efgh5678", "\nPORT=80", "assigned_secret"),
    ("export SECRET_TOKEN=", HEX, "\n", "assigned_secret"),
    ("SESSION_SECRET: ", HEX, "\n", "assigned_secret"),
    ("DB_PASSWORD=", "hunter2supersecret", "\n", "assigned_secret"),
    ('password = "', "hunter2supersecret", '"', "assigned_secret"),
    ('DbPassword = "', "P@ss;w0rd,#!", '";', "assigned_secret"),
    ('\\"admin_password\\": \\"', "correcthorsebattery", '\\"', "assigned_secret"),
    ("if password == '", "Tr0ub4dor&3", "':", "assigned_secret"),
    ('client_secret: "', "Zx8Q~abcdefghijklmnop.q", '"', "assigned_secret"),
    ('api_key := "', HEX, '"', "assigned_secret"),
    ('let token: String = "', HEX, '";', "assigned_secret"),
    ("const API_KEY: &'static str = \"", HEX, '";', "assigned_secret"),
    ('os.environ["API_KEY"] = "', HEX, '"', "assigned_secret"),
    ("ENV['API_KEY'] ||= '", HEX, "'", "assigned_secret"),
    ("'auth_token' => '", HEX, "',", "assigned_secret"),
    ('SECRET_KEY_BASE = b"', HEX, '"', "assigned_secret"),
    ("https://host.example/a?token=", HEX, "&page=1", "assigned_secret"),
    ("AccountName=shop;AccountKey=", "a1B2c3D4" * 10 + "/+==", ";Endpoint=x", "assigned_secret"),
    ("https://hooks.slack.com/services/", "T00000000/B00000000/" + "X1" * 12, "", "slack_webhook"),
]

HARMLESS = [
    "The sk-learn estimator has a class sk-toggleable__label-arrow and sk-container-id-1.",
    "postgres://user:password@localhost:5432/db and https://example.com:8080/a@b and mailto:a@b.c",
    "Authorization: Bearer $TOKEN, Authorization: Bearer YOUR_API_KEY, Authorization: Bearer <token>",
    "api_key=os.environ['ANTHROPIC_API_KEY'] if api_key is None else api_key",
    "He is the bearer of bad news; the secret: be kind. Password: see the other page.",
    "max_tokens=1024000000000000000, token: abc, secret_name=projects/1234/secrets/foo",
    "sha256 3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, id 123e4567-e89b-12d3-a456-426614174000",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
    "a line that says -----BEGIN PRIVATE KEY----- and goes on as prose, without any key.",
    "for key, secret in pairs: print(f'{key}={secret}')",
    "eyJhbGci is how a token begins; hf_hub_download(repo) is a function; npm_config_cache is a variable",
    "password_hash = 'abcdef0123456789abcdef0123456789'",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
]

CODE = [
    "token = get_token()", "token = generateToken2FromRequest123(request)", 'password = input("Password: ")',
    'key = "name"', 'secret = os.environ["SECRET"]', 'token: str = ""', 'api_key="…"',
    'api_key = "your-api-key"',
    'api_key="test"', 'password = "changeme"', 'password = "changeme123"', "max_tokens = 8000",
    "private_key = Ed25519PrivateKey.generate()",
    '{"password": "string"}', "secret_key_base: String", '"password": {"type": "string", "minLength": 8}',
    'print("Password:"+username+":"+str(port))', 'password = "test_password1"',
    'label_password = "auth.password.label"',
    'password: "required"', 'password = "********"', 'password = "${DB_PASSWORD_1}"', "token = sha256DigestOfUser",
    'token_url = "https://host.example/oauth2/token1234"', 'token = "https://host.example/oauth2/v1234"',
    "API_TOKEN = config2.settings.api_token_v1", "password = settings.database.password1", "PWD=/home/user1/project2",
    'pad_token = "<|end_of_text_128001|>"', "self.password = Argon2PasswordHasher1()", "PASSWORD=$(cat /run/secret1)",
    'password_field = "login-form-2-password"', "TOKEN=${{ secrets.TOKEN_2024_ABC }}",
    'forgot_password: "/reset/v2/password"',
]  # fmt: skip


@pytest.mark.parametrize(("secret", "kind"), SECRETS.items(), ids=lambda value: str(value)[:20])
def test_a_secret_is_taken_out_wherever_it_stands(secret: str, kind: str) -> None:
    for before, after in (("", ""), ("my key is ", "."), ("KEY=", "\n"), ('{"k":"', '"}'), ("(", ")"), ("\\n", "\\n")):
        found = redact(before + secret + after)
        assert secret not in found.text
        assert found.text.startswith(before)
        assert found.text.endswith(after)
        assert found.found == {kind: 1}
        assert f"[redacted:{kind}:1]" in found.text


@pytest.mark.parametrize(("before", "secret", "after", "kind"), IN_CONTEXT)
def test_only_the_secret_itself_is_taken_out(before: str, secret: str, after: str, kind: str) -> None:
    assert redact(before + secret + after).text == f"{before}[redacted:{kind}:1]{after}"


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: str(text)[:30])
def test_what_only_looks_a_little_like_a_secret_stays(text: str) -> None:
    assert redact(text).text == text
    assert redact(text).found == {}


@pytest.mark.parametrize("text", CODE)
def test_code_and_placeholders_stay(text: str) -> None:
    assert Redactor().code(f"x = 1\n{text}\ny = 2\n") == f"x = 1\n{text}\ny = 2\n"


@given(
    st.lists(
        st.sampled_from([*"\"'`=:[]\\ \n", ":=", "password", "API_KEY", "token", "TOKEN=", ": str ", HEX, "hunter2x!"]),
        max_size=30,
    )
)
def test_what_was_cleaned_once_is_clean(parts: list[str]) -> None:
    once = redact("".join(parts)).text
    assert redact(once).text == once


def test_equal_secrets_get_equal_marks_and_others_do_not() -> None:
    one, other = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    redactor = Redactor()
    assert redactor.text(f"{one} {other} {one}") == (
        "[redacted:github_token:1] [redacted:github_token:2] [redacted:github_token:1]"
    )
    assert redactor.found() == {"github_token": 3}
    assert redactor.text(other) == "[redacted:github_token:2]"
    assert (redactor.found(), redactor.found()) == ({"github_token": 1}, {})


def test_a_mark_says_nothing_of_the_secret() -> None:
    """Whoever tries all short passwords finds no difference between the marks."""
    assert len({redact(f"ftp://me:{password}@host").text for password in ("a", "b", "hunter2", "zzz")}) == 1


def test_code_keeps_its_lines_and_loses_its_keys() -> None:
    body = "\n".join(["MIIEowIBAAKCAQEA" * 4, "Proc-Type: 4,ENCRYPTED", "", "aZ9+/x=="])
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    assert Redactor().code(f"a\n{key}\nb") == (
        "a\n[redacted:private_key:1]\n[redacted]\nProc-Type: 4,ENCRYPTED\n\n[redacted]\n-----END PRIVATE KEY-----\nb"
    )
    quoted = key.replace("\n", "\\n")
    assert "MIIE" not in Redactor().code(quoted)
    assert "aZ9" not in Redactor().code(quoted)


@pytest.mark.parametrize("gap", ["\n", " "])
def test_code_between_the_marks_of_a_key_is_not_hidden(gap: str) -> None:
    text = f"# -----BEGIN PRIVATE KEY-----{gap}rm -rf /{gap}evil(){gap}# -----END PRIVATE KEY-----"
    shown = Redactor().code(text)
    assert "rm -rf /" in shown
    assert "evil()" in shown
    assert shown.count("\n") == text.count("\n")


def test_json_is_cleaned_in_names_and_values_and_at_any_depth() -> None:
    secret = "ghp_" + "a1B2" * 9
    value = {"a": [1, None, True, {secret: f"x {secret}"}], "t": (secret,)}
    mark = "[redacted:github_token:1]"
    assert Redactor().json(value) == {"a": [1, None, True, {mark: f"x {mark}"}], "t": [mark]}
    deep: object = secret
    for _ in range(600):
        deep = [deep]
    assert secret not in repr(Redactor().json(deep))


@given(st.text(max_size=200), st.sampled_from(sorted(SECRETS)), st.text(max_size=200))
def test_a_text_without_its_secrets_has_none_any_more(before: str, secret: str, after: str) -> None:
    once = redact(f"{before} {secret} {after}")
    assert secret not in once.text
    assert redact(once.text).text == once.text


@given(
    st.lists(
        st.sampled_from(
            [
                "the",
                "quick",
                "brown",
                "fox",
                "jumps",
                "over",
                "a",
                "lazy",
                "dog,",
                "and",
                "key:",
                "is",
                "(not)",
                "=",
                "42",
                "/",
                "x",
            ]
        ),
        max_size=60,
    )
)
def test_prose_stays_as_it_is(words: list[str]) -> None:
    assert redact(" ".join(words)).found == {}


@given(st.text(alphabet="sk-anteyJ.:/@='\"\\n -BEGINPRVATKY0a", max_size=400))
def test_any_text_can_be_searched(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@pytest.mark.parametrize(
    "piece",
    [
        "sk-", "sk-ant-", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", f"-----BEGIN PRIVATE KEY-----\n{BODY}\n",
        "://a:", "password=", "authorization: bearer ", "\\nsk-", "SG.aaaaaaaaaaaaaaaaa.", "x-api-key: ", "-",
        "password='", "password=\"a", "token:", "TOKEN=a.", "api_key: str ", "PASSWORD=", 'token"] = "', "secret ",
        f"{BODY} ", "--password ", "--a-b-", "mysql -p", "curl -u a", "curl --user a:", "<password>aaaaaaaa",
        "password=aB3&",
        "MTIzMTIzMTIzMTIzMTIz.", f"Private-Lines: 1\n{BODY}\n", "azurewebsites.net/api/", "://a:b@", "aws_secret_key='",
        "authorization: basic YWRt", "password' value='", "_pass=",
    ],
)  # fmt: skip
def test_the_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Ten times the text takes about ten times as long; what takes the square of it would take a hundred times."""
    short, long = piece * (10_000 // len(piece)), piece * (100_000 // len(piece))
    assert _seconds(long) < 30 * _seconds(short) + 0.05


def _seconds(text: str) -> float:
    taken = []
    for _ in range(3):
        start = time.process_time()
        redact(text)
        taken.append(time.process_time() - start)
    return min(taken)
