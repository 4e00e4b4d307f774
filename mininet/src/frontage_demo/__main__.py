# SPDX-License-Identifier: Apache-2.0
"""`python -m frontage_demo`: the demo. Environment variables set it up (`frontage_testbed.datacentre.settings`)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from frontage_testbed import sandbox
from frontage_testbed.console import make_console
from frontage_testbed.datacentre import api
from frontage_testbed.datacentre.deployment import Deployment, DeploymentError, find
from frontage_testbed.datacentre.settings import Settings, SettingsError, from_environment, output_directory, page_from_environment
from frontage_testbed.forward import Forward
from frontage_testbed.load import workload
from frontage_testbed.load.outcome import write_outcomes
from frontage_testbed.load.protocols import PROTOCOLS
from frontage_testbed.nodes import NodeError

from . import report
from .keep import keep
from .live import LiveTable
from .metrics import PolicyRun, summarise
from .page.demo import demo as demo_page
from .runner import run_plan
from .scheduling import refusal_table

Body = Callable[[Settings, Deployment, Path, sandbox.Sandbox], int]
"""A demo: it takes settings, the parts of the testbed, the results' directory and a sandbox, and returns its exit status."""


def write_results(settings: Settings, plan: list[workload.Arrival], runs: list[PolicyRun], directory: Path, startup: float) -> int:
    """Write `result.json`, `requests.csv` and `report.html`, and return the number of failed requests."""
    framing = PROTOCOLS[settings.protocol].framing
    offered = workload.offered_load(plan, settings.seconds, settings.bottleneck_rate, framing)
    summaries = {r.name: summarise(plan, r, settings.seconds) for r in runs}
    result = {
        "settings": settings.as_dict() | {"offered_load": offered},
        "startup_s": startup,
        "policies": {
            r.name: asdict(r.treatment)
            | summaries[r.name].as_dict()
            | {
                "drops": dict(r.drops),
                "aifo_refusals": dict(r.refusals),
                "steering": dict(r.steering),
                "cores": dict(r.cpu),
            }
            for r in runs
        },
    }
    (directory / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    write_outcomes({r.name: r.outcomes for r in runs}, directory / "requests.csv")
    (directory / "report.html").write_text(report.render(settings, plan, runs, offered))
    return sum(s.failures for s in summaries.values())


def demo(settings: Settings, deployment: Deployment, directory: Path, box: sandbox.Sandbox, forward: Forward | None = None) -> int:
    """Run every policy with every scheduler, and return 0 if no request failed."""
    protocol = PROTOCOLS[settings.protocol]
    plan = workload.plan(
        seed=settings.seed,
        seconds=settings.seconds,
        load=settings.load,
        rate=settings.bottleneck_rate,
        scale=settings.size_scale,
        clients=settings.clients,
        framing=protocol.framing,
    )
    plan_file = directory / "arrivals.csv"
    workload.write_plan(plan, plan_file)
    began = time.monotonic()
    runs: list[PolicyRun] = []
    failures = 0
    console = make_console()
    for policy, reason in settings.left_out.items():
        console.print(f"{settings.protocol.upper()} excludes policy {policy}: {reason}.", highlight=False)
    if len(settings.schedulers) > 1:
        console.print(
            f"Every policy runs with {' and with '.join(settings.schedulers)} at the bottleneck: "
            f"{len(settings.treatments)} runs of {settings.seconds:g} s plus draining.",
            highlight=False,
        )
    console.print(
        f"Bringing up {settings.clients} clients, the edge switch ({settings.target_name}), {settings.servers} servers ...",
        highlight=False,
    )
    try:
        make_testbed = deployment.quic_testbed if settings.protocol == "quic" else deployment.testbed
        testbed = make_testbed(settings, box)
        token = api.serve_api(testbed.edge.config)
        with testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            startup = time.monotonic() - began
            console.print(f"Up after {startup:.1f} s. To look inside: nsenter --all --target {box.process}", highlight=False)
            if forward is not None:
                api.show_console(forward, token, console)
            with LiveTable([t.name for t in settings.treatments], settings.seconds, console) as live:
                for treatment in settings.treatments:
                    runs.append(run_plan(testbed, treatment, plan, plan_file, live))
                    # After every run, so that a later failure does not lose earlier results.
                    failures = write_results(settings, plan, runs, directory, startup)
            if settings.keep:
                keep(testbed, plan_file, console)
    except BaseException:
        # The kernel removes the scratch directory with the namespaces: keep what explains the failure.
        box.keep_logs(directory / "logs")
        console.print(f"Logs are in {directory / 'logs'}", highlight=False)
        raise
    if table := refusal_table(runs):
        console.print(table)
    console.print(f"Report: {directory / 'report.html'}", highlight=False)
    if failures:
        console.print(f"[red]{failures} requests failed[/red]; result.json has the reasons, requests.csv the requests")
    return 1 if failures else 0


def main() -> int:
    """Run the demo with the settings from the environment."""
    try:
        directory = output_directory()
        if page := page_from_environment():
            return _run(partial(demo_page, forward=Forward(api.PORT)), page, directory)
        return _run(partial(demo, forward=Forward(api.PORT)), from_environment(), directory)
    except (SettingsError, DeploymentError, sandbox.SandboxError) as error:
        print(f"frontage demo: {error}", file=sys.stderr)
        return 2


def _run(body: Body, settings: Settings, directory: Path) -> int:
    deployment = find(settings)
    for old in ("report.html", "result.json", "requests.csv", "arrivals.csv"):
        (directory / old).unlink(missing_ok=True)
    return sandbox.run(lambda box: _report_errors(body, settings, deployment, directory, box), directory)


def _report_errors(body: Body, settings: Settings, deployment: Deployment, directory: Path, box: sandbox.Sandbox) -> int:
    try:
        return body(settings, deployment, directory, box)
    except NodeError as error:
        print(f"frontage demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("frontage demo: interrupted; everything that was started has been removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
