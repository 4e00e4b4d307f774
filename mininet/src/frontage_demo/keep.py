# SPDX-License-Identifier: Apache-2.0
"""Keeps the demo's network up after its runs, so that an operator can try the console."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.testbed import Testbed


def keep(testbed: Testbed, plan_file: Path, console: Console) -> None:
    """Replay the plan again and again, under the policies that the operator chooses, until Ctrl-C."""
    console.print("The network stays up, with requests, until Ctrl-C: try the console.", highlight=False)
    try:
        while True:
            clients = Clients(testbed.clients, testbed.generator(plan_file), testbed.scratch / "clients.log")
            try:
                clients.run(lambda: None)
            finally:
                clients.stop()
    except KeyboardInterrupt:
        console.print("Stopping ...", highlight=False)
