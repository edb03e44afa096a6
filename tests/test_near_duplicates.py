"""Value classes that declare nearly the same fields are few: a further one includes the value that there is."""

from .near_duplicates import near_duplicates

MAX_PAIRS = 50


def test_hardly_any_value_is_declared_twice() -> None:
    pairs = near_duplicates()
    told = [" ~ ".join(pair.names) for pair in pairs]
    assert len(pairs) <= MAX_PAIRS, f"inherit from the other class, or make it a field of this one: {told}"
