"""Passwords are recognised by the name beside them, wherever people write them down; names and references are none."""

import string
from collections import Counter
from random import Random

import pytest

from muster.text.secrets.names_in_code import is_name
from muster.text.secrets.redaction import GUESSED, Redactor, redact

from .samples import PASSWORDS

CHARACTERS = string.ascii_letters + string.digits
MIN_RECALL = 0.95


@pytest.mark.parametrize("length", [8, 10, 12, 16, 24])
def test_passwords_drawn_at_random_are_recognised_wherever_they_are_written(length: int) -> None:
    random, missed = Random(length), Counter[str]()
    for text in PASSWORDS:
        for _ in range(100):
            secret = "".join(random.choices(CHARACTERS, k=length))
            clean, found = Redactor().code_and_secrets(text.format(secret))
            missed[text] += secret in clean or not found
    print(f"{length} characters, {missed.total()} of {100 * len(PASSWORDS)} missed: {dict(+missed)}")
    assert max(missed.values()) <= 100 * (1 - MIN_RECALL) + 4  # of 100 drawn: four more are chance
    assert 1 - missed.total() / (100 * len(PASSWORDS)) >= MIN_RECALL


@pytest.mark.parametrize("name", ["a.yaml", "b.yml", "c.ini", "d.properties", ".env", ".env.local", "my.cnf"])
def test_a_short_password_is_recognised_where_nothing_else_than_a_value_can_stand(name: str) -> None:
    clean, found = Redactor().code_and_secrets("db_password=hunter2\nuser=me\n", name)
    assert clean == "db_password=[redacted:assigned_secret:1]\nuser=me\n"
    assert [one.kind for one in found] == ["assigned_secret"]


NO_PASSWORDS = [
    "password: ${DB_PASSWORD}", "password: {{ vault_db_password1 }}", "password: $DB_PASSWORD_1",
    "password: %(db_pw1)s", "password: <your password>", "password: str", "password: Optional[str] = None",
    "password: SecretStr",
    "password: string", "password: required", "password: true", "password:", "password: null", 'password: ""',
    "password: changeme123", "password: your-password-1", "password: example123",
    "password: xxxxxxxx", "password: ********",
    "password: !vault |", "password: *anchor12", "password: vault:secret/data/db#password1", "password: hashedPassword",
    "self.password = hashedPassword2;", "pwd = self.pwd", "pwd = getPassword2();",
    "password = settings.db2.passwordOfUser",
    "password=user_password_1, host=h", "const password = req.body.password;", "passwordField: passwordInput,",
    "password = await readPassword1(path)", "connect(password=dbPassword, user=dbUser)", "PWD=/home/user1/project2",
    "<password>${db.password1}</password>", "<password>{password1}</password>", "<password>password</password>",
    '<input type="password" value="{{ value1 }}">', "tool --password PASSWORD", "tool --password $PASSWORD1",
    "the option --password overrides it", "pass --password authentication along", "mysql -u root -p shop",
    "mysql --port=3306 -protocol", "curl -u $USER:$PASSWORD1 https://h.example",
    "curl -u user:password https://h.example",
    "Password: see the other page. Passwords: none; the password is needed twice.",
    "password-less, password_hash = sha256sum",
    "Server=h;User Id=sa;Password=<password>;", "Password={0};", "Password=********;", "_auth=${NPM_AUTH}",
    "//registry.example/:_authToken=${NPM_TOKEN}", "Authorization: Bearer ${TOKEN_OF_THE_DEPLOYMENT_1}",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_PASSWORDS)
@pytest.mark.parametrize("name", ["a.py", "a.yaml"])
def test_names_references_placeholders_and_prose_are_no_passwords(text: str, name: str) -> None:
    assert Redactor().code_and_secrets(f"x = 1\n{text}\ny = 2\n", name) == (f"x = 1\n{text}\ny = 2\n", ())


HIGH = [
    ("Authorization: Bearer ", "Zx9Qw7Er5Ty3Ui1Op0As8Df6", "", "authorization_token"),
    ("Authorization: Basic ", "YWRtaW46WHg5UXc3RXI1VHkz", "", "basic_login"),
    ("postgres://svc:", "Zx9Qw7Er5Ty3Ui1O", "@db.internal/x", "url_login"),
    ('aws_secret_access_key = "', "Zx9Qw7Er5Ty3Ui1Op0As8Df6Gh4Jk2Lz0Xc9Vb7N", '"', "aws_secret_key"),
    ("_auth=", "bWU6aHVudGVyMjI=", "\n", "npm_auth"),
]

LOW = [
    ("Authorization: Basic ", "dXNlcjpwYXNzd29yZA==", "", "authorization"),  # user:password
    ("Authorization: Bearer ", "abcdef123456", "", "authorization"),
    ("postgres://me:", "hunter2", "@db.internal/x", "url_password"),
    ("postgres://me:", "Zx9Qw7Er5Ty3Ui1O", "@localhost/x", "url_password"),
    ("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", "assigned_secret"),
]


@pytest.mark.parametrize(("before", "secret", "after", "kind"), [*HIGH, *LOW])
def test_what_cannot_be_an_example_is_more_than_a_guess(before: str, secret: str, after: str, kind: str) -> None:
    assert redact(before + secret + after).text == f"{before}[redacted:{kind}:1]{after}"
    assert (kind in GUESSED) == ((before, secret, after, kind) in LOW)


@pytest.mark.parametrize(
    "name",
    ["hashedPassword", "password_2", "sha256OfUser", "getHTTPResponseCode", "x_axis", "DB_PASSWORD_FILE",
     "settings.database.password1", "UserPasswordInput"],
)  # fmt: skip
def test_names_in_code_are_told_from_what_was_drawn(name: str) -> None:
    assert is_name(name)


def test_what_was_drawn_is_seldom_a_name() -> None:
    random = Random(1)
    drawn = ["".join(random.choices(CHARACTERS, k=8)) for _ in range(2000)]
    assert sum(map(is_name, drawn)) < 0.05 * len(drawn)
