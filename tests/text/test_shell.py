"""Commands that no shell runs: what a shell would treat specially is found, and what it takes literally is not."""

import pytest

from muster.text.shell import shell_syntax

SPECIAL = [
    ("make test && make lint", "&&"),
    ("true\nfalse", "\n"),
    ("echo a#b && false", "&&"),
    ("true # false", "#"),
    ("#", "#"),
    ("test -f *.py", "*"),
    ("test -f a?c", "?"),
    ("test -f [ab].py", "["),
    ("ls ~/x", "~"),
    ("echo {a,b}", "{"),
    ("echo $HOME", "$"),
    ('echo "$HOME"', "$"),
    ('echo "a \\$b"', "$"),
    ("echo `id`", "`"),
    ('echo "`id`"', "`"),
    ("a | b", "|"),
    ("a|b", "|"),
    ("a || b", "||"),
    ("a & b", "&"),
    ("a; b", ";"),
    ("a;b", ";"),
    ("a < b", "<"),
    ("a >b", ">"),
    ("a 2>&1", ">"),
    ("(a)", "("),
    ("A=1 make", "A=1"),
    ("a \\\nb", "\\"),
    ("a\rb", "\r"),
]
LITERAL = [
    "make test",
    "  make   test ",
    "grep -q 'a && b; $c `d` #e *.py {f} (g) <h' file",
    'sh -c "a && b; c | d > e # f *.py ~ {g}"',
    "sh -c 'true\nfalse'",
    "git diff --quiet HEAD~1",
    "grep fix#12 file",
    "find . -exec true {} +",
    "[ -f README.md ]",
    "echo a\\;b \\* \\#",
    "pytest -k 'a and b' --flag=1",
    "python -c 'x = 1'",
    "echo 'it'\"'\"'s'",
    "it's && 'b",
    "",
]


@pytest.mark.parametrize(("command", "syntax"), SPECIAL)
def test_what_only_a_shell_understands_is_found(command: str, syntax: str) -> None:
    assert shell_syntax(command) == syntax


@pytest.mark.parametrize("command", LITERAL)
def test_what_a_shell_takes_literally_is_not_shell_syntax(command: str) -> None:
    assert shell_syntax(command) is None
