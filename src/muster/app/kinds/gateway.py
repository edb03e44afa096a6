"""What goes through the gateway under one name as a kind of work: it is started by the first request, by no order."""

from muster.domain.kind import WorkKind

GATEWAY = WorkKind(
    workload="exchanges",
    word="gateway run",
    about="Requests of foreign programs that went through the gateway under one name.",
    module="muster.app.gateway.workload",
    command="muster serve",
    example="muster serve",
    subject=lambda spec: (spec.get("name"),),
)
