"""Questions for permission that a CLI agent asks in plain text, found by the patterns that its section gives."""

from dataclasses import dataclass

from muster.agents.local import MAX_NAME, LineBuffer
from muster.domain.errors import BadArgument, BadConfiguration, BadOutput
from muster.text.json_documents import readable
from muster.text.limited.pattern_library import compile_pattern

TOOL = "tool"  # the group of a pattern that names the tool
_MAX_LINE = 2_000  # characters of a line that are looked at, from its end
MAX_QUESTION = 4 * _MAX_LINE  # bytes of it
_SECONDS = 0.1  # that one search may take: other calls of the process wait meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class TextQuestion:
    """A line that asks for permission."""

    tool: str  # empty when the pattern names none
    line: str


class QuestionSeen(Exception):
    """The agent asks for permission and waits for an answer that nobody gives."""

    def __init__(self, question: TextQuestion) -> None:
        super().__init__(question.line)
        self.question = question


@dataclass(frozen=True, slots=True)
class QuestionPatterns:
    """The patterns of one agent; without any, no line is a question.

    They stand in muster.toml and nowhere else, so that they are searched for in this process.
    """

    patterns: tuple[str, ...] = ()

    def check(self, agent: str) -> None:
        """Refuse what is not a regular expression."""
        for pattern in self.patterns:
            try:
                compile_pattern(pattern)
            except BadArgument as error:
                raise BadConfiguration(
                    f"agent {agent!r}: permission_patterns: {error.message}", suggestions=error.suggestions
                ) from error

    def find(self, line: str) -> TextQuestion | None:
        """Return the question that a line asks; raises BadOutput when a pattern takes too long on it."""
        shown = line.strip()[-_MAX_LINE:]
        for pattern in self.patterns:
            try:
                found = compile_pattern(pattern).search(shown, timeout=_SECONDS)
            except (TimeoutError, MemoryError) as error:
                raise BadOutput(
                    f"permission_patterns: the pattern {pattern[:80]!r} takes too long on this line",
                    suggestions=("avoid nested repeats such as (a+)+",),
                ) from error
            if found is not None:
                return TextQuestion(tool=(found.groupdict().get(TOOL) or "")[:MAX_NAME], line=shown)
        return None


NO_QUESTIONS = QuestionPatterns()


class QuestionWatch:
    """Looks at the lines of an output as they come, also at one that has not ended: a question often does not."""

    def __init__(self, patterns: QuestionPatterns) -> None:
        self._patterns, self._lines = patterns, LineBuffer()

    def feed(self, data: bytes) -> None:
        """Take a chunk; raises QuestionSeen for the first line that asks."""
        for line in (*self._lines.feed(data), self._lines.end_of_rest(MAX_QUESTION)):
            question = self._patterns.find(readable(line)) if line.strip() else None
            if question is not None:
                raise QuestionSeen(question)
