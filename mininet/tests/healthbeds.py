# SPDX-License-Identifier: Apache-2.0
"""Testbeds whose controller checks their servers: the health of servers, the assignment of connections, and times in the log."""

import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4, VIP6
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.servers import WebServer
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.metricsclient import scrape
from frontage_testbed.nodes import Namespace

LIMIT = 60.0
"""Seconds that a test waits for anything. The checks need a few."""

GET = """
import http.client, sys
for vip in sys.argv[2:]:
    for _ in range(int(sys.argv[1])):
        connection = http.client.HTTPConnection(vip, {port}, timeout=20)
        connection.request("GET", "/health")
        print(connection.getresponse().headers["X-Server"])
        connection.close()
"""

HOLD = """
import http.client, pathlib, sys, time
connection = http.client.HTTPConnection(sys.argv[1], {port}, timeout=20)
for turn in range(2):
    connection.request("GET", "/health")
    response = connection.getresponse()
    response.read()
    print(response.headers["X-Server"], flush=True)
    while not turn and not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.05)
"""


class Held:
    """Connections that make one request at once and another one at the end."""

    def __init__(self, client: Namespace, directory: Path, count: int, vip: str) -> None:
        self._go = directory / "go"
        self._outputs = [directory / f"held{i}" for i in range(count)]
        self._processes = []
        for output in self._outputs:
            with output.open("wb") as out:
                words = [sys.executable, "-c", HOLD.format(port=HTTP_PORT), vip, str(self._go)]
                self._processes.append(client.spawn(words, stdout=out, stderr=out))
        wait(lambda: all(output.read_text() for output in self._outputs), "the connections did not begin")

    def servers(self) -> list[list[str]]:
        """Make the other requests, and return the servers of both requests of each connection."""
        self._go.touch()
        for process in self._processes:
            process.wait(LIMIT)
        return [output.read_text().split() for output in self._outputs]


@dataclass
class Bed:
    """A testbed whose controller checks its servers."""

    testbed: Testbed
    scratch: Path

    @property
    def client(self) -> Namespace:
        return self.testbed.clients[0]

    def server(self, index: int) -> WebServer:
        return self.testbed.web_servers[index]

    def assigned(self) -> set[str]:
        """Return the servers of a dozen new connections to each VIP."""
        return set(self.connections(12, VIP4, VIP6))

    def connections(self, count: int, *vips: str) -> Counter[str]:
        """Return the servers of ``count`` new connections to each VIP, one after the other."""
        script = GET.format(port=HTTP_PORT)
        return Counter(self.client.run([sys.executable, "-c", script, str(count), *vips], timeout=LIMIT).stdout.split())

    def hold(self, count: int, vip: str) -> Held:
        """Begin connections that last."""
        return Held(self.client, self.scratch, count, vip)

    def healths(self) -> dict[str, set[str]]:
        """Return the health of each host's servers, for both VIPs."""
        result: dict[str, set[str]] = {}
        for sample in scrape(METRICS).samples:
            if sample.name == "frontage_server_health" and sample.value:
                result.setdefault(sample.labels["server"].partition("-")[0], set()).add(sample.labels["health"])
        return result

    def wait_for(self, name: str, health: str) -> None:
        wait(lambda: self.healths().get(name) == {health}, f"{name} is not {health}: {self.healths()}")

    def wait_for_effect(self, name: str, health: str, began: float) -> tuple[float, float]:
        """Wait until the switch knows of a change of health of the host's servers for both VIPs.

        Return the seconds after ``began`` until it was detected and until it was written, from the controller's log.
        """
        self.wait_for(name, health)
        says = {"failed": "has failed: ", "healthy": "has recovered "}[health]
        times: list[float] = []

        def is_written() -> bool:
            text = self.log()
            changes = seconds_until(text, rf"server {name}-\S+ of VIP \S+ {says}", began)
            writes = seconds_until(text, r"\d+ entries: ", began)
            times[:] = [max(changes, default=0), *(seconds for seconds in writes if seconds >= max(changes, default=0))]
            return bool(changes) and len(times) > 1

        wait(is_written, f"the switch does not know that {name} is {health}")
        return times[0], times[1]

    def passed(self) -> int:
        """Return the number of passed checks."""
        return scrape(METRICS).by("result", "frontage_health_checks_total").get("passed", 0)

    def log(self) -> str:
        return (self.testbed.edge.config.parent / "controller.log").read_text()


def wait(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def seconds_until(text: str, pattern: str, began: float) -> list[float]:
    """Return the times of the log lines that match, in seconds after ``began``."""
    stamps = re.findall(rf"^(\S+ \S+) \w+ {pattern}", text, re.MULTILINE)
    times = [datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp() - began for stamp in stamps]
    return [seconds for seconds in times if seconds >= 0]
