# SPDX-License-Identifier: Apache-2.0
"""The demo with real servers: brings up the testbed, loads the page with every client, and writes the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from frontage_testbed.console import make_console
from frontage_testbed.datacentre import api
from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.forward import Forward
from frontage_testbed.sandbox import Sandbox

from . import report
from .clients import BROWSERS, Client, installed
from .loads import Load
from .pictures import Object, draw
from .run import load_all
from .testbed import PageTestbed


def demo(settings: Settings, deployment: Deployment, directory: Path, box: Sandbox, forward: Forward | None = None) -> int:
    """Load the page in both forms with every installed client, and return 0 if every object arrived unchanged."""
    console = make_console()
    clients = installed(deployment.h3_client, settings.servers - 1)
    missing = sorted(BROWSERS.keys() - {client.name for client in clients})
    if missing:
        programs = ", ".join(BROWSERS[name][0] for name in missing)
        console.print(f"Not installed: {', '.join(missing)} (apt-get install {programs}). The demo continues without.")
    console.print(
        f"Bringing up a client, the edge switch, a load balancer and {settings.servers - 1} real servers ...",
        highlight=False,
    )
    loads: list[Load] = []
    try:
        testbed = deployment.with_real_servers(PageTestbed, settings, box)
        token = api.serve_api(testbed.edge.config)
        with testbed:
            pictures = draw(settings.seed, [server.name for server in testbed.real_servers])
            testbed.offer(pictures)
            testbed.wait_until_ready()
            console.print(f"Up. To look inside: nsenter --all --target {box.process}", highlight=False)
            if forward is not None:
                api.show_console(forward, token, console)
            for load in load_all(testbed, clients, pictures):
                loads.append(load)
                console.print(f"  {load.client}, {report.TITLES[load.form]}: {load.seconds * 1e3:.0f} ms", highlight=False)
                # After every load, so that a later failure does not lose earlier results.
                _write(settings, loads, missing, testbed.screen(), directory)
            if settings.keep:
                _keep(testbed, clients[:1], pictures, console)
    except BaseException:
        # The kernel removes the scratch directory with the namespaces: keep what explains the failure.
        box.keep_logs(directory / "logs")
        console.print(f"Logs are in {directory / 'logs'}", highlight=False)
        raise
    console.print(_table(loads))
    console.print(f"Report: {directory / 'report.html'}", highlight=False)
    failures = sum(load.failures for load in loads)
    if failures:
        console.print(f"[red]{failures} objects did not arrive unchanged[/red]; result.json lists them")
    return 1 if failures else 0


def _keep(testbed: PageTestbed, clients: Sequence[Client], pictures: Sequence[Object], console: Console) -> None:
    """Load the page again and again until Ctrl-C."""
    console.print("The network stays up, and a client loads the page, until Ctrl-C: try the console.", highlight=False)
    try:
        while True:
            for load in load_all(testbed, clients, pictures):
                if load.failures:
                    console.print(f"{load.failures} objects did not arrive unchanged", style="red", highlight=False)
    except KeyboardInterrupt:
        console.print("Stopping ...", highlight=False)


def _write(settings: Settings, loads: Sequence[Load], missing: Sequence[str], screen: bytes | None, directory: Path) -> None:
    result = {
        "settings": settings.as_dict(),
        "missing": list(missing),
        "loads": [asdict(load) | {"seconds": load.seconds, "failures": load.failures} for load in loads],
    }
    (directory / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    (directory / "report.html").write_text(report.render(settings, loads, missing, screen))


def _table(loads: Sequence[Load]) -> Table:
    table = Table(title="page loads; bytes of bodies by sender (KB)", title_justify="left")
    for column in ("client", "form"):
        table.add_column(column, no_wrap=True)
    for column in ("page (ms)", "delegated", *loads[0].bodies):
        table.add_column(column, justify="right", no_wrap=True)
    for load in loads:
        handed = f"{load.handed}/{len(load.objects) - 1}"
        sent = (f"{count / 1e3:.0f}" for count in load.bodies.values())
        table.add_row(load.client, report.TITLES[load.form], f"{load.seconds * 1e3:.0f}", handed, *sent)
    return table
