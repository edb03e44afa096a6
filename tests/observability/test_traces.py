"""Traces: what a collector of OpenTelemetry's SDK sees of runs, calls, attempts and batches."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from muster.app import open_muster
from muster.domain.errors import BadArgument, BadConfiguration, RunFailed
from muster.domain.run import RunState
from muster.settings import load_settings
from tests.engine.batches.house import ANTHROPIC, batch, open_house, questions, survey, wait_for
from tests.observability.house import watched_run

MODEL = ANTHROPIC.partition("/")[2]
SECRET = "sk-ant-" + "aB3dE5gH7jK9mN1p" * 3  # put together, so that no scanner takes it for a real one


class Collector:
    """A provider whose spans are kept in memory, as a collector would get them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def children(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [span for span in self.spans if span.parent and span.parent.span_id == _id(parent)]

    def written(self) -> str:
        return "\n".join(span.to_json() for span in self.spans)


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_suite_with_a_retry_a_batch_and_a_child_run_is_seen_nested(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house:
        run = await watched_run(house, tracer_provider=collector.provider)
    assert run.state is RunState.COMPLETED
    root, suite = collector.one("invoke_workflow greeting_and_suite"), collector.one("invoke_workflow suite")
    assert root.parent is None
    assert suite.parent is not None
    assert suite.parent.span_id == _id(root)

    (greeting,) = [span for span in collector.children(root) if span is not suite]
    assert greeting.name == f"invoke_agent {ANTHROPIC}"
    refused, answered = collector.children(greeting)
    assert (refused.name, answered.name) == (f"chat {MODEL}", f"chat {MODEL}")
    assert refused.status.status_code is StatusCode.ERROR
    assert _attributes(refused)["error.type"] == "rate_limited"
    assert _attributes(refused)["muster.attempt.retry_in_seconds"] > 0
    assert answered.status.status_code is StatusCode.UNSET

    cases = collector.children(suite)
    assert [span.name for span in cases] == [f"invoke_agent {ANTHROPIC}"] * 2
    sent = collector.one("batch")
    assert sent.parent is None
    for case in cases:
        (member,) = collector.children(case)
        assert [link.context.span_id for link in member.links] == [_id(sent)]
        assert _attributes(member)["muster.batch.id"] == _attributes(sent)["muster.batch.id"]
    assert _attributes(sent)["muster.batch.requests"] == 2
    assert len(collector.spans) == 10  # two runs, three calls, four attempts, a batch


async def test_attributes_follow_the_conventions_for_generative_ai(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house:
        run = await watched_run(house, tracer_provider=collector.provider)
    root = _attributes(collector.one("invoke_workflow greeting_and_suite"))
    assert root["gen_ai.operation.name"] == "invoke_workflow"
    assert root["gen_ai.workflow.name"] == "greeting_and_suite"
    assert (root["muster.run.id"], root["muster.run.state"]) == (run.id, "completed")
    call = _attributes(collector.named(f"invoke_agent {ANTHROPIC}")[0])
    assert call["gen_ai.operation.name"] == "invoke_agent"
    assert (call["gen_ai.agent.name"], call["muster.call.key"], call["muster.call.attempts"]) == (
        ANTHROPIC,
        "greeting",
        2,
    )
    for span in collector.named(f"chat {MODEL}")[1:]:
        found = _attributes(span)
        assert span.kind is SpanKind.CLIENT
        assert found["gen_ai.operation.name"] == "chat"
        assert (found["gen_ai.provider.name"], found["gen_ai.request.model"]) == ("anthropic", MODEL)
        assert found["gen_ai.usage.input_tokens"] > 0
        assert found["gen_ai.usage.output_tokens"] > 0
        assert found["gen_ai.response.finish_reasons"] == ("stop",)


async def test_a_call_that_is_answered_from_the_journal_has_no_attempt(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house:
        run = await watched_run(house)
        async with house.open(tracer_provider=collector.provider) as muster:
            forked = await muster.runs.fork(run.id, "suite")
            again = await (await muster.resume(forked.id)).wait()
    assert again.state is RunState.COMPLETED
    call = next(span for span in collector.spans if _attributes(span).get("muster.call.key") == "greeting")
    assert _attributes(call)["muster.call.from_journal"] is True
    assert collector.children(call) == []


async def test_a_resumed_run_shows_the_batch_that_its_calls_are_in(tmp_path: Path) -> None:
    collector, hours = Collector(), [0.0]
    async with open_house(tmp_path / "house", lambda: time.time() + hours[0] * 3600, batch_ms=3_600_000) as house:
        async with house.open() as muster:
            spec = survey(ANTHROPIC, questions(2))
            left = await (await muster.start("survey", spec, dispatch=batch(), detach=True)).wait()
            assert left.state is RunState.WAITING
        hours[0] = 2.0  # the provider is done by now
        async with house.open(tracer_provider=collector.provider) as muster:
            run = await (await muster.resume(left.id)).wait()
    assert run.state is RunState.COMPLETED
    followed = collector.one("batch")
    members = collector.named(f"chat {MODEL}")
    assert [[link.context.span_id for link in span.links] for span in members] == [[_id(followed)]] * 2
    assert all(_attributes(span)["muster.attempt.number"] == 1 for span in members)
    assert _attributes(collector.one("invoke_workflow survey"))["muster.run.epoch"] == 2


async def test_prompts_answers_and_secrets_are_left_out(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house:
        house.play({"fault": "400", "nth": 1})
        async with house.open(tracer_provider=collector.provider) as muster:
            with pytest.raises(RunFailed):
                await muster.ask(ANTHROPIC, f"my key is {SECRET}")
            await muster.ask(ANTHROPIC, f"my key is {SECRET}")
    assert len(collector.named(f"chat {MODEL}")) == 2
    assert "my key" not in collector.written()
    assert SECRET not in collector.written()


async def test_content_is_recorded_when_it_is_asked_for_and_without_secrets(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house:
        environment = house.environment | {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        async with house.open(tracer_provider=collector.provider, environment=environment) as muster:
            await muster.ask(ANTHROPIC, f"my key is {SECRET}", system="be brief")
    found = _attributes(collector.one(f"chat {MODEL}"))
    (asked,) = json.loads(found["gen_ai.input.messages"])
    assert asked["role"] == "user"
    assert asked["parts"][0]["content"].startswith("my key is ")
    assert json.loads(found["gen_ai.system_instructions"]) == [{"type": "text", "content": "be brief"}]
    (answered,) = json.loads(found["gen_ai.output.messages"])
    assert (answered["role"], answered["finish_reason"]) == ("assistant", "stop")
    assert SECRET not in collector.written()


async def test_runs_go_below_the_span_that_is_current_where_they_are_started(tmp_path: Path) -> None:
    collector = Collector()
    async with open_house(tmp_path / "house") as house, house.open(tracer_provider=collector.provider) as muster:
        with collector.provider.get_tracer("user").start_as_current_span("outer"):
            await muster.ask(ANTHROPIC, "hello")
    (run,) = collector.children(collector.one("outer"))
    assert run.name == "invoke_workflow ask"


async def test_a_canceled_call_leaves_no_span_open(tmp_path: Path) -> None:
    collector = Collector()
    slow = open_house(tmp_path / "house", latency_ms=60_000.0)
    async with slow as house, house.open(tracer_provider=collector.provider) as muster:
        asking = asyncio.create_task(muster.ask(ANTHROPIC, "hello"))
        await wait_for(lambda: house.audit.requests > 0)
        asking.cancel()
        await asyncio.wait({asking})
    names = {span.name for span in collector.spans}
    assert names == {"invoke_workflow ask", f"invoke_agent {ANTHROPIC}", f"chat {MODEL}"}


async def test_what_is_not_a_provider_of_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="TracerProvider"):
        async with open_muster(tmp_path, tracer_provider=object()):
            pass


async def test_traces_without_their_exporter_are_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text("[observability]\notel = true\n")
    settings = load_settings(folder=tmp_path, environment={})
    with pytest.raises(BadConfiguration, match="opentelemetry-exporter-otlp-proto-http is not installed"):
        async with open_muster(settings=settings):
            pass
    assert not settings.database.exists()


async def test_the_console_gets_spans_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = load_settings(folder=tmp_path, environment={"OTEL_TRACES_EXPORTER": "console"})
    async with open_muster(settings=settings) as muster:
        await muster.ask("sim/echo", "hello")
    out, err = capfd.readouterr()
    assert out == ""
    assert '"name": "invoke_workflow ask"' in err
    assert '"service.name": "muster"' in err
