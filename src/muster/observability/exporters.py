"""Where traces go: a provider of OpenTelemetry's SDK with the exporter that was chosen.

The address, headers and certificates of OTLP are read by the exporter itself, from the usual OTEL_EXPORTER_OTLP_*
variables.
"""

import importlib
import sys
from typing import Any

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from muster.domain.errors import BadConfiguration
from muster.observability.options import TraceOptions

_OTLP = {  # by protocol: the module of the exporter, and the package that has it
    "http/protobuf": (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry-exporter-otlp-proto-http",
    ),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "opentelemetry-exporter-otlp-proto-grpc"),
}


def make_provider(options: TraceOptions) -> TracerProvider:
    """Make a provider that sends spans in the background."""
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(options)))
    return provider


def _resource() -> Resource:
    """Describe this process; a name from OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES goes first."""
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "muster"}))
    return found


def _exporter(options: TraceOptions) -> SpanExporter:
    if options.exporter == "console":
        return ConsoleSpanExporter(out=sys.stderr)  # standard output is for answers
    module, package = _OTLP[options.protocol]
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise BadConfiguration(
            f"traces are to be sent by OTLP ({options.protocol}), and the package {package} is not installed",
            suggestions=(f"pip install {package}", "or turn traces off: OTEL_SDK_DISABLED=true"),
        ) from error
    exporter: SpanExporter = found.OTLPSpanExporter()
    return exporter
