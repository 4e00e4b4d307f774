# SPDX-License-Identifier: Apache-2.0
"""Packets per second through a whole switch, veth to veth, in a network namespace that ends with this process.

The results are the highest rate without loss, the rate in overload, and the packets per second of the switch's user-space core time.
The peer gets the same program, entries and traffic.
A bare forwarder on the same links shows the limit of the kernel for this traffic.
`two-ports` compares packet threads at two ports that receive at the same time with a single thread, in runs that alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from frontage.p4.session import Session
from paths import program
from processes import user_seconds
from rows import NO_PEER, Row, finish, rates, row
from sites import SITES, Site
from switches import DEVICE_ID, Switch, bmv2, softswitch

PORTS = (1, 2)
INTERFACES = [f"{port}@switch{port}" for port in PORTS]
FAR_ENDS = [f"{port}@far{port}" for port in PORTS]
TWO_PORTS = "two-ports"
RUNS = 3
"""Number of runs of each switch in `two-ports`."""
BARE = "a bare forwarder, which copies packets from ring to ring"


def make_links() -> None:
    """Create a veth pair for each port: ``switchN`` is the switch's end, ``farN`` the other one."""
    # Without IPv6, the kernel does not send packets of its own.
    commands = ["sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"]
    for port in PORTS:
        commands.append(f"ip link add switch{port} type veth peer name far{port}")
        commands += [f"ip link set {end}{port} up" for end in ("switch", "far")]
    for command in commands:
        subprocess.run(command.split(), check=True)


def send(site: Site) -> dict[str, float]:
    """Send the site's traffic through the links and return the rates."""
    return rates("wire", str(site.write()), *FAR_ENDS)


async def run(switch: Switch, site: Site) -> dict[str, float]:
    """Install the site on a switch and return the rates of its traffic."""
    with switch.running(INTERFACES) as running:
        async with Session(running.address, DEVICE_ID) as session:
            await site.install(session)
            before = user_seconds(running.pid)
            result = await asyncio.to_thread(send, site)
            return result | {"per_core": result["received"] / (user_seconds(running.pid) - before)}


@contextlib.contextmanager
def bare_forwarder() -> Iterator[None]:
    command = [str(program("FRONTAGE_BENCH", "frontage-bench")), "forward", *(f"switch{port}" for port in PORTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("the bare forwarder did not start")
            yield
        finally:
            process.kill()


def measure(name: str) -> list[Row]:
    site, peer = SITES[name](), bmv2()
    make_links()
    ours = asyncio.run(run(softswitch(), site))
    with bare_forwarder():
        bare = send(site)
    peer_name, theirs = None, dict[str, float]()
    if peer is None:
        print(NO_PEER, file=sys.stderr)
    else:
        peer_name, theirs = peer.name, asyncio.run(run(peer, site))
    return [
        row(f"veth_{name}_pps", ours["lossless"], "packets/s", peer_name, theirs.get("lossless")),
        row(f"veth_{name}_pps_overload", ours["overload"], "packets/s", peer_name, theirs.get("overload")),
        row(f"veth_{name}_pps_per_core", ours["per_core"], "packets/s of core time", peer_name, theirs.get("per_core")),
        row(f"veth_{name}_pps_bare", ours["lossless"], "packets/s", BARE, bare["lossless"]),
        row(f"veth_{name}_pps_bare_overload", ours["overload"], "packets/s", BARE, bare["overload"]),
        row(f"veth_{name}_sender_percent", 100 * ours["sender"], "% of a core", BARE, 100 * bare["sender"]),
    ]


def measure_threads() -> list[Row]:
    """Compare two packet threads with one, for traffic between clients and servers at one port each."""
    make_links()
    one, two = softswitch("--threads", "1"), softswitch("--threads", "2")
    rows = []
    for name in ("frontage", "quic"):
        site = SITES[name]()
        runs = [{switch.name: asyncio.run(run(switch, site)) for switch in (one, two)} for _ in range(RUNS)]

        def of(switch: Switch, rate: str, runs: list[dict[str, dict[str, float]]] = runs) -> float:
            return median(found[switch.name][rate] for found in runs)

        for rate, unit in (("overload", "packets/s"), ("per_core", "packets/s of core time")):
            rows.append(row(f"veth_two_ports_{name}_pps_{rate}", of(two, rate), unit, one.name, of(one, rate)))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", choices=[*SITES, TWO_PORTS])
    site = parser.parse_args().site
    finish(measure_threads if site == TWO_PORTS else partial(measure, site))
