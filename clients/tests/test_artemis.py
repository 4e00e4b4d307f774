# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients in Artemis' testbed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from artemis import CLIENTS, failures
from catalogue import HERE, read
from frontage_demo.artemis.programs import find
from frontage_testbed.datacentre.deployment import DeploymentError

BEST = "eu-central-1"


def seen(**other: Any) -> dict[str, dict[str, Any]]:
    """Return the row of a client that moved, with changes."""
    return {"it": {"version": "1", "whole": True, "site": BEST, "before": 6, "after": 0, "log": ""} | other}


def test_client_must_move_to_best_site_and_leave_service_address() -> None:
    assert failures(seen(), BEST) == []
    assert failures(seen(site=None), BEST) == []
    for strange in ({"whole": False, "log": "no"}, {"site": "us-east-2"}, {"after": 1}):
        assert len(failures(seen(**strange), BEST)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root: run this with sudo")
def test_unmodified_clients_bind_late(tmp_path: Path) -> None:
    try:
        find()
    except DeploymentError as error:
        pytest.skip(str(error))
    moving = [client.name for client in read() if client.name in CLIENTS and client.name != "curl" and client.installed_program()]
    if not moving:
        pytest.skip("no client with preferred addresses is installed: make build/stamps/quic-clients, make build/stamps/clients")
    only = [word for name in moving for word in ("--only", name)]
    command = [sys.executable, HERE / "artemis.py", *only, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "clients.json").read_text())
    assert {name: row["site"] for name, row in rows.items()} == dict.fromkeys(moving, BEST)
    assert all(row["before"] > 0 for row in rows.values())
