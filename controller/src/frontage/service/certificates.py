# SPDX-License-Identifier: Apache-2.0
"""The validity of the controller's certificates, for the status and for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from frontage.service.control import TcpApi
from frontage.service.controller import Controller
from frontage.service.metrics_endpoint import Endpoint


def refresh_certificates(controllers: Mapping[str, Controller]) -> None:
    """Read replaced certificates for the switches, to detect faults before the next connection."""
    for controller in list(controllers.values()):
        if controller.credentials is not None:
            controller.credentials.refresh()


def describe_certificates(controllers: Mapping[str, Controller], api: TcpApi, endpoint: Endpoint | None) -> list[dict[str, Any]]:
    """Return each certificate: its use, the days until it expires, and the error of a replaced file."""
    found: list[dict[str, Any]] = []
    for name, controller in controllers.items():
        own = controller.credentials
        if own is not None and own.days_left is not None:
            found.append({"use": f"switch {name}", "days_left": round(own.days_left, 2), "error": own.error})
    if api.days_left is not None:
        found.append({"use": "api", "days_left": round(api.days_left, 2), "error": api.error})
    metrics = None if endpoint is None else endpoint.certificates
    if metrics is not None:
        found.append({"use": "metrics", "days_left": round(metrics.certificate.days_left, 2), "error": metrics.error})
    return found


def certificate_metrics(described: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield the days until certificates expire, and whether replaced files are invalid."""
    days = GaugeMetricFamily("frontage_certificate_days_left", "Days until the certificate in use expires", labels=["use"])
    errors = GaugeMetricFamily("frontage_certificate_error", "1 if replaced files are invalid and not in use", labels=["use"])
    for certificate in described:
        days.add_metric([certificate["use"]], certificate["days_left"])
        errors.add_metric([certificate["use"]], float(certificate["error"] is not None))
    yield from (days, errors)
