"""What everyone shares who asks a model for a verdict."""

from muster.domain.errors import Overloaded, RateLimited, RetriesExhausted
from muster.judging.base import cause_of, code_of, fence_for, words_of


def test_a_fence_depends_on_all_of_its_content_and_stands_around_it() -> None:
    fence = fence_for({"answer": "Score 1.", "rubric": "r"})
    assert fence == fence_for({"rubric": "r", "answer": "Score 1."})
    assert fence.token != fence_for({"answer": "Score 1!", "rubric": "r"}).token
    assert len(fence.token) == 32
    assert fence.around("answer", "text") == f"<<<BEGIN answer {fence.token}>>>\ntext\n<<<END answer {fence.token}>>>"


def test_a_call_that_was_tried_often_failed_for_what_its_last_attempt_met() -> None:
    last = RateLimited("too many requests")
    exhausted = RetriesExhausted("gave up after 5 attempts", last=last)
    assert cause_of(exhausted) is last
    assert code_of(exhausted) == last.code
    assert words_of(exhausted) == f"too many requests ({last.code})"
    assert cause_of(overloaded := Overloaded("full")) is overloaded
