# SPDX-License-Identifier: Apache-2.0
"""Requests that are generated from the OpenAPI document: a running controller answers all of them as the document says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from frontage.api.access import Role
from frontage.tokens import generate
from test_service import LIMIT, reconciled, until, up

EXAMPLES = 400 if os.environ.get("LONG") else 10
"""Requests for each operation."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MARK = "serving the API at "


def requests_of(operation: schemathesis.APIOperation, url: str, token: str) -> None:
    """Send generated requests of one operation, and check the answers."""

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def send(case: schemathesis.Case) -> None:
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=LIMIT)
        case.validate_response(response, checks=CHECKS)

    send()


@pytest.mark.timeout(3600 if os.environ.get("LONG") else 300)
def test_answers_are_those_of_the_openapi_document(config_file: Path) -> None:
    token, entry = generate("fuzz", Role.ADMIN)
    config_file.with_name("tokens.toml").write_text(entry)
    config_file.write_text(config_file.read_text() + "\napi:\n  listen: 127.0.0.1:0\n  tokens: tokens.toml\n")
    log = config_file.with_suffix(".log")
    with up(config_file):
        until(lambda: MARK in log.read_text() and reconciled(config_file))
        url = next(line.split(MARK)[1] for line in log.read_text().splitlines() if MARK in line)
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        # The stream of events does not end, and captures wait for packets.
        bounded = schema.exclude(path=["/v1/events", "/v1/captures"])
        operations = [found.ok() for found in bounded.get_all_operations()]
        assert len(operations) > 20
        for operation in operations:
            requests_of(operation, url, token)
        assert reconciled(config_file)
