"""Questions to one agent as a kind of work."""

from muster.domain.kind import WorkKind

QUESTION = WorkKind(
    workload="ask",
    word="question",
    about="Ask one agent, or a person, one question.",
    module="muster.app.questions.ask",
    command="muster ask",
    example="muster ask AGENT PROMPT",
    order="muster.app.kinds.question_order:QuestionOrder",
    subject=lambda spec: (spec.get("agent"), spec.get("prompt")),
)
