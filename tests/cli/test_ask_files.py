"""`muster ask --file`: what the file is, who can be shown it, and what is refused before anything is stored."""

import json
from pathlib import Path

import pytest

from muster.app.kinds.question_order import QuestionOrder
from muster.app.questions.ask import question_of, read_question
from muster.domain.errors import BadArgument
from muster.domain.media import MediaFile
from tests.pictures import pdf, png


def test_files_are_shown_before_the_prompt_and_stored_as_references(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.pdf").write_bytes(pdf(2))
    files = (tmp_path / "a.png", tmp_path / "b.pdf")
    question = question_of(QuestionOrder(agent="a", prompt="What?", files=files))
    assert [type(part).__name__ for part in question.content] == ["MediaFile", "MediaFile", "str"]
    assert (question.request().prompt, [each.pages for each in question.request().media]) == ("What?", [None, 2])
    spec = json.loads(json.dumps(question.spec()))
    assert str(tmp_path) not in json.dumps(spec)
    again = read_question(spec)
    assert again.request().media == tuple(
        each.reference for each in question.request().media if isinstance(each, MediaFile)
    )
    assert "content" not in question_of(QuestionOrder(agent="a", prompt="What?")).spec()  # type: ignore[operator]


@pytest.mark.parametrize("name", ["text.txt", "none.png", "."])
def test_a_file_that_is_no_image_and_no_document_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(BadArgument) as caught:
        question_of(QuestionOrder(agent="a", prompt="What?", files=(tmp_path / name,)))
    assert caught.value.exit_code == 2
    assert "PNG" in " ".join([caught.value.message, *caught.value.suggestions])
