"""What people say about verdicts."""

import pytest

from muster.domain.errors import BadArgument
from muster.domain.review import Opinion, opinion_of


@pytest.mark.parametrize("word", ["right", "wrong", "borderline"])
def test_an_opinion_is_read(word: str) -> None:
    assert opinion_of(word) == Opinion(word) == word


def test_any_other_word_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadArgument, match="the opinion must be one of right, wrong, borderline, not 'maybe'"):
        opinion_of("maybe")
