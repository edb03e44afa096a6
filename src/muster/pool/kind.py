"""Tasks and fan-outs as kinds of work."""

from muster.domain.kind import WorkKind

TASK = WorkKind(
    workload="task",
    word="task",
    about="Have a CLI agent work on a task in a slot of the pool.",
    module="muster.pool.workload",
    command="muster task submit",
    example="muster task submit PROMPT --agent AGENT",
    order="muster.pool.order:TaskOrder",
    subject=lambda spec: (spec.get("agent"), spec.get("prompt")),
    in_slot=True,
    redacts=True,
)
FAN_OUT = WorkKind(
    workload="",  # its runs are tasks
    word="fan-out",
    about="Submit one task for each of many prompts.",
    command="muster fan-out",
    order="muster.pool.order:FanOutOrder",
)
