"""What routes answer with, as JSON Schema: the fields that clients may rely on. More may be there."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
MAYBE_FLAG: Schema = {"type": ["boolean", "null"]}
MAYBE_OBJECT: Schema = {"type": ["object", "null"]}


def fields(kind: Schema, names: str) -> dict[str, Schema]:
    """Return fields of one kind by their names."""
    return dict.fromkeys(names.split(), kind)


def answer(**properties: Schema) -> Schema:
    """Return an object that has all of these fields."""
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(items: Schema) -> Schema:
    """Return a list."""
    return {"type": "array", "items": items}


def named(name: str) -> Schema:
    """Return a shape of SHAPES."""
    return {"$ref": f"#/components/schemas/{name}"}


COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
MONEY_FIELDS = fields(NUMBER, "cost_usd spent_usd imputed_usd uncertain_usd reserved_usd")
COST: Mapping[str, Schema] = {**MONEY_FIELDS, "budget_usd": MAYBE_NUMBER}

SHAPES: Mapping[str, Schema] = {
    "Run": answer(
        **fields(TEXT, "id workload state dispatch"),
        **fields(MAYBE_TEXT, "name subject ended_reason created_at started_at ended_at parent started_by continued_by"),
        **COST,
        lineage=answer(**COST),
        calls=answer(**fields(COUNT, "total done failed uncertain reused")),
        tags=listed(TEXT),
        **fields(MAYBE_OBJECT, "origin error verdict"),
    ),
    "Call": answer(
        **fields(TEXT, "key agent state"),
        attempts=COUNT,
        **fields(MAYBE_NUMBER, "cost_usd seconds"),
        **fields(MAYBE_TEXT, "quality reused_from"),
        error=MAYBE_OBJECT,
    ),
    "Case": answer(
        **fields(TEXT, "case suite subject status why description file"),
        **fields(MAYBE_NUMBER, "score threshold seconds"),
        **fields(NUMBER, "cost_usd judge_cost_usd"),
        missing_epochs=COUNT,
        tags=listed(TEXT),
    ),
    "Event": answer(**fields(TEXT, "run kind at"), seq=COUNT, data={"type": "object"}),
    "Question": answer(**fields(TEXT, "run key agent prompt asked_at answer_with")),
    "Batch": answer(
        **fields(TEXT, "id state provider created_at"), **fields(NUMBER, "cost_usd saving_usd"), cancel_requested=FLAG
    ),
    "Task": answer(
        **fields(TEXT, "id run state original_prompt created_at"),
        **fields(
            MAYBE_TEXT,
            "name slot output model session_id branch base summary operation merged_into stderr started_at ended_at",
        ),
        **COST,
        **fields(COUNT, "rejection_count max_rejections priority"),
        **fields(MAYBE_COUNT, "turns elapsed_ms exit_code changed"),
        other_branches=listed(TEXT),
        nested_repositories=listed(TEXT),
        beside=listed(TEXT),
        success=MAYBE_FLAG,
        budget_exceeded=FLAG,
        tags=listed(TEXT),
        after=listed(TEXT),
    ),
    "Slot": answer(
        **fields(TEXT, "id name state"),
        **fields(MAYBE_TEXT, "role current_task current_task_name session_id worktree"),
        **COST,
        **fields(COUNT, "tasks_completed restart_count"),
    ),
    "Pool": answer(slots=COUNTS, tasks=COUNTS, **fields(NUMBER, "spend_usd unlisted_usd"), **COST, draining=FLAG),
    "SlotMessage": answer(id=COUNT, **{"from": MAYBE_TEXT}, text=TEXT, sent_at=TEXT),
    "SentSignal": answer(channel=TEXT, seq=COUNT, payload=ANYTHING),
    "Review": answer(**fields(TEXT, "run case opinion note at"), epoch=COUNT),
    "AuditRecord": answer(seq=COUNT, **fields(TEXT, "at action subject")),
    "BattleMessage": answer(
        seq=COUNT, role=TEXT, content=TEXT, **fields(COUNT, "tokensIn tokensOut"), costUsd=NUMBER, createdAt=TEXT
    ),
    "BattleDecision": answer(
        turn=COUNT,
        **fields(TEXT, "stage verdict createdAt"),
        confidence=MAYBE_NUMBER,
        criteriaApplied=listed(TEXT),
        model=MAYBE_TEXT,
        latencyMs=NUMBER,
    ),
    "Acknowledged": answer(acknowledged=FLAG),
    "Money": answer(**MONEY_FIELDS),
    "Overlaps": answer(overlaps=listed({"type": "object"}), overlaps_left_out=COUNT, overlaps_unknown=MAYBE_TEXT),
}

RUN, TASK, BATCH, OVERLAPS = named("Run"), named("Task"), named("Batch"), named("Overlaps")
MONEY, BUDGET = named("Money"), answer(budget_usd=MAYBE_NUMBER)
SLOTS, MESSAGES = answer(slots=listed(named("Slot"))), answer(messages=listed(named("SlotMessage")))

# By method and path, for every route that answers with JSON of one shape.
ANSWERS: Mapping[str, Schema] = {
    "get /healthz": answer(status={"enum": ["ok", "attention"]}),
    "get /api/audit": answer(records=listed(named("AuditRecord")), next=MAYBE_COUNT),
    "get /api/agents": answer(agents=listed(answer(name=TEXT, human=FLAG)), run_budget_usd=MAYBE_NUMBER),
    "get /api/library": answer(items=listed(answer(kind={"enum": ["suite", "chain", "council"]}, name=TEXT))),
    "post /api/ask": RUN,
    "get /api/runs": answer(runs=listed(RUN), next=MAYBE_TEXT),
    "get /api/runs/{run_id}": {"allOf": [RUN, answer(batches=ANYTHING, result=ANYTHING)]},
    "delete /api/runs/{run_id}": answer(deleted=listed(TEXT)),
    "get /api/runs/{run_id}/calls": answer(calls=listed(named("Call")), next=MAYBE_TEXT),
    "get /api/runs/{run_id}/attempts": answer(calls=listed({"type": "object"}), next=MAYBE_TEXT),
    "get /api/runs/{run_id}/call": {
        "allOf": [named("Call"), answer(request=ANYTHING, reply=MAYBE_OBJECT, attempt_list=listed({"type": "object"}))]
    },
    "get /api/runs/{run_id}/questions": answer(questions=listed(named("Question"))),
    "post /api/runs/{run_id}/answer": answer(**fields(TEXT, "run key sent_at root state"), workers=COUNT),
    "post /api/runs/{run_id}/cancel": RUN,
    "post /api/runs/{run_id}/resume": RUN,
    "post /api/runs/{run_id}/fork": RUN,
    "post /api/battles/start": answer(**fields(TEXT, "id jobId conversationId state")),
    "get /api/battles/{run_id}/status": answer(
        **fields(TEXT, "id conversationId state"),
        **fields(COUNT, "turn messageCount lastSeq"),
        **fields(NUMBER, "progress costUsd"),
        **fields(MAYBE_TEXT, "endedReason lastActivityAt"),
        usage={"type": "object"},
    ),
    "get /api/battles/{run_id}/messages": answer(messages=listed(named("BattleMessage")), nextSeq=COUNT),
    "get /api/battles/{run_id}/decisions": listed(named("BattleDecision")),
    "post /api/battles/{run_id}/cancel": named("Acknowledged"),
    "post /api/scale/start": answer(**fields(TEXT, "id runId jobId state")),
    "get /api/scale/{run_id}/status": answer(
        **fields(TEXT, "runId state"),
        progress=NUMBER,
        **fields(COUNT, "completed total unjudged"),
        counts=COUNTS,
        conversationIds=listed(TEXT),
    ),
    "get /api/scale/{run_id}/report": answer(
        counts=COUNTS, conversationIds=listed(TEXT), costUsd=NUMBER, summary=TEXT, revisedPrompt=MAYBE_TEXT
    ),
    "post /api/scale/{run_id}/cancel": named("Acknowledged"),
    "post /api/suites/start": RUN,
    "get /api/suites/trend": answer(
        name=TEXT,
        runs=listed(
            answer(
                **fields(TEXT, "id state created_at"),
                **MONEY_FIELDS,
                baselines=listed(TEXT),
                subjects=listed(
                    answer(
                        subject=TEXT,
                        cases_run=COUNT,
                        **fields(MAYBE_NUMBER, "pass_rate mean_score"),
                        pass_interval={"type": ["array", "null"], "items": NUMBER},
                        **fields(NUMBER, "cost_usd judge_cost_usd"),
                    )
                ),
            )
        ),
    ),
    "get /api/suites/{run_id}/previous": answer(run={"anyOf": [RUN, {"type": "null"}]}),
    "get /api/suites/{run_id}/summary": answer(
        ok=FLAG, verdict=TEXT, counts=COUNTS, warnings=listed(TEXT), subjects=listed(answer(subject=TEXT))
    ),
    "get /api/suites/{run_id}/subjects": answer(
        subjects=listed(answer(subject=TEXT, **fields(MAYBE_TEXT, "agent prompt")))
    ),
    "get /api/suites/{run_id}/cases": answer(cases=listed(named("Case")), next=MAYBE_TEXT),
    "get /api/suites/{run_id}/case": named("Case"),
    "get /api/compare": {"type": "object"},
    "get /api/compare/pairs": answer(
        pairs=listed(
            answer(
                **fields(TEXT, "case subject_a subject_b change reason"),
                epoch=COUNT,
                **fields(MAYBE_TEXT, "before after"),
                **fields(MAYBE_NUMBER, "before_score after_score"),
            )
        ),
        counts=COUNTS,
        next=MAYBE_TEXT,
    ),
    "get /api/baselines": answer(baselines=listed(answer(name=TEXT))),
    "get /api/reviews": answer(run=TEXT, reviews=listed(named("Review")), borderline=COUNT),
    "post /api/reviews": named("Review"),
    "get /api/chains": answer(chains=listed(RUN)),
    "post /api/chains": RUN,
    "get /api/chains/{run_id}/progress": answer(
        **fields(TEXT, "id chain status"),
        **fields(COUNT, "total_steps completed_steps"),
        current_step=MAYBE_COUNT,
        **fields(MAYBE_TEXT, "current_name partial_output started_at"),
        steps=listed(answer(name=TEXT, status=TEXT, cost_usd=NUMBER, retries_used=COUNT)),
    ),
    "post /api/chains/{run_id}/resume": RUN,
    "post /api/chains/{run_id}/cancel": RUN,
    "get /api/councils": answer(councils=listed(RUN)),
    "post /api/councils": RUN,
    "get /api/councils/{run_id}/trace": {"type": "object"},
    "post /api/councils/{run_id}/inject": named("SentSignal"),
    "post /api/councils/{run_id}/stop": named("SentSignal"),
    "get /api/verify": answer(verifications=listed(RUN)),
    "post /api/verify": RUN,
    "get /api/verify/metrics": {"type": "object"},
    "get /api/verify/{run_id}/status": answer(
        ok=FLAG, verdict=TEXT, counts=COUNTS, waves=listed({"type": "object"}), files=listed({"type": "object"})
    ),
    "get /api/verify/{run_id}/findings": answer(
        findings=listed(
            answer(
                **fields(TEXT, "file severity finding"),
                **fields(COUNT, "line end_line"),
                by=listed(TEXT),
                rejected=MAYBE_TEXT,
                code=MAYBE_OBJECT,
            )
        ),
        total=COUNT,
        next=MAYBE_TEXT,
    ),
    "get /api/tasks": answer(tasks=listed(TASK), more=FLAG),
    "post /api/tasks/claim/{slot}": answer(task=MAYBE_TEXT),
    "get /api/tasks/{task_id}/result": {"allOf": [TASK, OVERLAPS]},
    "get /api/tasks/{task_id}/diff": {"allOf": [OVERLAPS, answer(diff=TEXT)]},
    "get /api/tasks/{task_id}/logs": answer(log=listed({"type": "object"})),
    **dict.fromkeys(("post /api/tasks", "get /api/tasks/{task_id}"), TASK),
    **{f"post /api/tasks/{{task_id}}/{verb}": TASK for verb in ("approve", "reject", "allow", "deny")},
    **{f"post /api/tasks/{{task_id}}/{verb}": TASK for verb in ("change", "cancel", "retry")},
    "get /api/pool": named("Pool"),
    "get /api/pool/slots": SLOTS,
    "get /api/pool/metrics": answer(tasks=COUNT, **MONEY_FIELDS),
    "post /api/pool/scale": SLOTS,
    "post /api/pool/drain": named("Pool"),
    "get /api/pool/context": answer(context={"type": "object", "additionalProperties": TEXT}),
    "get /api/pool/context/{name}": answer(name=TEXT, text=TEXT),
    "put /api/pool/context/{name}": answer(name=TEXT, text=TEXT),
    "delete /api/pool/context/{name}": answer(deleted=TEXT),
    "get /api/pool/slots/{slot}/messages": MESSAGES,
    "post /api/pool/slots/{slot}/messages": named("SlotMessage"),
    "post /api/pool/slots/{slot}/messages/read": MESSAGES,
    "post /api/pool/messages": answer(slots=listed(TEXT)),
    "get /api/batches": answer(batches=listed(BATCH), next=MAYBE_TEXT),
    "get /api/batches/stats": answer(batches=COUNT),
    "get /api/batches/{batch_id}": BATCH,
    "post /api/batches/{batch_id}/cancel": BATCH,
    "get /api/costs": {
        "allOf": [
            MONEY,
            answer(
                **fields(TEXT, "since until"),
                **fields(NUMBER, "unlisted_by_agent_usd unlisted_by_run_usd"),
                days=listed({"allOf": [MONEY, BUDGET, answer(day=TEXT)]}),
                agents=listed({"allOf": [MONEY, answer(agent=TEXT, attempts=COUNT)]}),
                runs=listed({"allOf": [MONEY, BUDGET, answer(**fields(TEXT, "id workload state created_at"))]}),
                budgets=listed({"allOf": [MONEY, BUDGET, answer(kind=TEXT, name=TEXT)]}),
            ),
        ]
    },
}
