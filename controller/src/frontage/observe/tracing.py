# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry traces of the controller's work, configured by the standard environment variables OTEL_*.

Without these variables, no library is loaded, and a span costs one function call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

Context = Any
"""An OpenTelemetry context."""

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = {"http/protobuf": "http", "grpc": "grpc"}

_tracer: Any = None
"""None while tracing is off."""
_provider: Any = None


class TracingError(Exception):
    """The environment asks for traces that cannot be sent; the message says why and what to do."""


class Span:
    """A span in progress. Does nothing while tracing is off."""

    __slots__ = ("_span",)

    def __init__(self, span: Any = None):
        self._span = span

    def set(self, **attributes: Any) -> None:
        """Set the attributes that are not None."""
        if self._span is not None:
            self._span.set_attributes(_named(attributes))

    def fail(self, error: BaseException) -> None:
        """Record that the work failed."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR, str(error))

    def end(self, time_ns: int | None = None) -> None:
        """End a span that `begin` returned, now or at a Unix time in nanoseconds."""
        if self._span is not None:
            self._span.end(time_ns)

    @property
    def traceparent(self) -> str | None:
        """The header `traceparent` with this span; None while tracing is off."""
        if self._span is None:
            return None
        found = self._span.get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"


_NO_SPAN = Span()
_OFF: AbstractContextManager[Span] = nullcontext(_NO_SPAN)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the environment variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER")
    return exporter != "none" if exporter else any(environment.get(name) for name in ENDPOINTS)


def start(trace_id: Callable[[], str | None]) -> bool:
    """Send traces if the environment variables ask for it, and return whether they do. Raises TracingError.

    ``trace_id`` returns the id of a new trace; None for a random one.
    """
    global _tracer, _provider
    if not is_wanted(os.environ):
        return False
    exporters = [name.strip() for name in os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(",")]
    if any(name not in ("otlp", "console") for name in exporters):
        raise TracingError(f"OTEL_TRACES_EXPORTER: unknown exporter in {','.join(exporters)}: use otlp, console or none")
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        raise TracingError("traces need Python packages that are not installed: run `pip install 'frontage[tracing]'`")
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            wanted = trace_id()
            return super().generate_trace_id() if wanted is None else int(wanted, 16)

    # OTEL_SERVICE_NAME takes precedence; the library itself reads OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_BSP_*.
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "frontage"}
    _provider = TracerProvider(resource=Resource.create(named), id_generator=Ids())
    for name in exporters:
        if name == "console":
            _provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
        else:
            _provider.add_span_processor(BatchSpanProcessor(_otlp_exporter()))
    _tracer = _provider.get_tracer("frontage")
    return True


def stop() -> None:
    """Send the spans that are waiting, and stop."""
    global _tracer, _provider
    if _provider is not None:
        _provider.shutdown()
    _tracer = _provider = None


def _otlp_exporter() -> Any:
    name = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
    protocol = os.environ.get(name) or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter()
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

        return HttpExporter()
    raise TracingError(f"OTEL_EXPORTER_OTLP_PROTOCOL: unknown protocol {protocol}: use {' or '.join(PROTOCOLS)}")


def span(name: str, **attributes: Any) -> AbstractContextManager[Span]:
    """Do work in a span, which has the status ERROR if the work raises an exception. Omits attributes of value None."""
    return _OFF if _tracer is None else _span(name, attributes)


@contextmanager
def _span(name: str, attributes: Mapping[str, Any], **options: Any) -> Iterator[Span]:
    with _tracer.start_as_current_span(name, attributes=_named(attributes), record_exception=False, **options) as found:
        yield Span(found)


def server_span(name: str, headers: Mapping[str, str], **attributes: Any) -> AbstractContextManager[Span]:
    """Answer a request in a span, whose parent is in the headers of the request."""
    if _tracer is None:
        return _OFF
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    return _span(name, attributes, kind=SpanKind.SERVER, context=extract(headers))


def begin(name: str, **attributes: Any) -> Span:
    """Return a span that the caller ends with `Span.end`, for work that overlaps with other work of the task."""
    return _NO_SPAN if _tracer is None else Span(_tracer.start_span(name, attributes=_named(attributes)))


def here() -> tuple[Context, ...]:
    """Return the current context, for `inside`; nothing while tracing is off."""
    if _tracer is None:
        return ()
    from opentelemetry.context import get_current

    return (get_current(),)


@contextmanager
def inside(contexts: Sequence[Context]) -> Iterator[None]:
    """Do work in the last of these contexts."""
    if _tracer is None or not contexts:
        yield
        return
    from opentelemetry.context import attach, detach

    token = attach(contexts[-1])
    try:
        yield
    finally:
        detach(token)


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {f"frontage.{name}" if "." not in name else name: value for name, value in attributes.items() if value is not None}
