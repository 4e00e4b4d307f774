# SPDX-License-Identifier: Apache-2.0
"""`python -m frontage_demo.artemis`: measures Artemis, DNS and anycast over the same testbeds."""

from __future__ import annotations

import sys

from frontage_testbed import sandbox
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.nodes import NodeError

from .. import command
from . import events, failover, report
from .measure import by_anycast, measure, redundant
from .programs import find
from .results import Result, read, read_clients, read_failover, read_tries, save, save_failover, save_tries
from .scenarios import SCENARIOS
from .settings import Settings, parse
from .site import Programs
from .tables import unmet
from .testbed import ArtemisTestbed


def deployment(settings: Settings, name: str, programs: Programs, box: sandbox.Sandbox) -> None:
    """Measure one deployment, and write the results."""
    scenario = SCENARIOS[name]
    print(f"{scenario.title}: bringing up {len(scenario.sites)} sites ...", flush=True)
    directory = box.scratch / name
    with ArtemisTestbed(scenario, programs, directory, seed=settings.seed, dispatched=settings.dispatched) as testbed:
        steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in testbed.startup.items())
        print(f"Up ({steps}). To look inside: nsenter --all --target {box.process}", flush=True)
        samples = measure(testbed, settings.rounds, settings.seed, settings.methods)
        if name == settings.scenarios[0] and "artemis" in settings.methods:
            samples += redundant(testbed, settings.rounds, settings.degrees)
        save([Result.of(testbed, settings.seed, settings.rounds, samples)], settings.output / f"{name}.json")


def redundancy(settings: Settings, programs: Programs, box: sandbox.Sandbox) -> None:
    """Measure redundancy under packet loss and site failure, and write the results."""
    scenario = events.DETOUR
    (client,) = scenario.clients
    loss = events.between_sites(events.LOSS, scenario.sites)
    print(f"Packet loss and site failure: bringing up {len(scenario.sites)} sites ...", flush=True)
    directory = box.scratch / scenario.name
    with ArtemisTestbed(scenario, programs, directory, seed=settings.seed, loss=loss, dispatched=settings.dispatched) as testbed:
        by_anycast(testbed, client)
        tries = events.losses(testbed, client, settings.tries) + events.site_dies(testbed, client, settings.rounds)
        save_tries(tries, settings.output / "events.json")


def computed(settings: Settings, programs: Programs, box: sandbox.Sandbox) -> None:
    """Measure the mapping that the controllers compute, and write the results."""
    scenario = events.DETOUR
    (client,) = scenario.clients
    print(f"Computed mapping: bringing up {len(scenario.sites)} sites ...", flush=True)
    with ArtemisTestbed(scenario, programs, box.scratch / "computed", seed=settings.seed, computed=True) as testbed:
        save_failover(failover.failover(testbed, client), settings.output / "failover.json")


def main() -> int:
    """Run the requested measurements, write the page, and return 0 if the goals are reached."""
    settings = parse()
    try:
        programs = find()
        found, tries, seen = [], [], None
        for name in settings.scenarios:
            command.in_sandbox("artemis", lambda box, name=name: deployment(settings, name, programs, box), settings.output)  # type: ignore[misc]
            found += read(settings.output / f"{name}.json")
        if settings.tries:
            command.in_sandbox("artemis", lambda box: redundancy(settings, programs, box), settings.output)
            tries = read_tries(settings.output / "events.json")
            command.in_sandbox("artemis", lambda box: computed(settings, programs, box), settings.output)
            seen = read_failover(settings.output / "failover.json")
    except (DeploymentError, NodeError) as error:
        print(f"frontage artemis: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    clients = read_clients(settings.output / "clients.json")
    print(report.terminal(found, tries, seen, clients), flush=True)
    print(f"Page: {report.write(found, tries, seen, clients, settings.page)}", flush=True)
    missed = unmet(found) + events.unmet(tries) + (failover.unmet(seen) if seen else [])
    for goal in missed:
        print(f"not reached: {goal}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
