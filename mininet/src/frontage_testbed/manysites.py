# SPDX-License-Identifier: Apache-2.0
"""The controller of one of five sites while services move between them, with a switch without ports.

The other sites do not run: the store of the mapping contains their replicas and round-trip times from the start.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from frontage.api.access import Role
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.compute.values import Sample
from frontage.mapping.demand.moves import SiteStage, Stage
from frontage.mapping.services import Replica
from frontage.mapping.store.store import Store
from frontage.tokens import generate

from .datacentre.api import log_in_link
from .nodes import NodeError
from .ports import reserve_ports
from .processes import LAST_BYTES, end
from .programs import REPOSITORY, ours

START_LIMIT = 60.0
EXAMPLE = REPOSITORY / "controller" / "examples" / "artemis.yaml"
FRANKFURT, TOKYO, MONTREAL, SAO_PAULO, SINGAPORE = range(1, 6)
MOVING, PLANNED, EVERYWHERE = "films.example", "maps.example", "books.example"
"""A service that moves from Frankfurt to Tokyo, one that will be added to São Paulo, and one at every site."""

_MORE_SITES = """\
  - id: 3
    name: montreal
    vtep: "2001:db8:102::3"
    sids: [1600, 2399]
    location: { latitude: 45.5, longitude: -73.6 }
  - id: 4
    name: sao-paulo
    vtep: "2001:db8:102::4"
    sids: [2400, 3199]
    location: { latitude: -23.5, longitude: -46.6 }
  - id: 5
    name: singapore
    vtep: "2001:db8:102::5"
    sids: [3200, 3999]
    location: { latitude: 1.4, longitude: 103.8 }
"""
_MORE_VIPS = f"""\
  - {{ name: maps, protocol: udp, port: 443, artemis: {{ name: {PLANNED}, id: 5 }} }}
  - {{ name: books, protocol: udp, port: 443, artemis: {{ name: {EVERYWHERE}, id: 6 }} }}
"""
_SECTIONS = """
end_users: {{ store: "{store}" }}
placement:
  services: [{{ name: {moving} }}, {{ name: {planned} }}]
  sites: [{sites}]
  min_replicas: 1
  drain: 3600
api: {{ listen: "127.0.0.1:{port}", tokens: tokens.toml }}
"""
_RTTS = {
    "2001:db8:c1::/48": (12, 230, 80, 190, 160),
    "2001:db8:c2::/48": (20, 250, 100, 210, 180),
    "2001:db8:c3::/48": (55, 270, 130, 240, 120),
    "2001:db8:c4::/48": (110, 120, 190, 300, 60),
    "2001:db8:c5::/48": (250, 105, 210, 300, 95),
    "2001:db8:c6::/48": (220, 35, 170, 290, 75),
    "2001:db8:c7::/48": (100, 140, 25, 140, 210),
    "2001:db8:c8::/48": (180, 240, 110, 70, 300),
}
"""Round-trip times in milliseconds from client prefixes to the sites."""


@contextmanager
def controller_of_many_sites(folder: Path) -> Iterator[str]:
    """Run the switch and the controller, and return the address of the console that logs in. Raises NodeError."""
    (switch,) = ours(REPOSITORY / "target" / "release", "softswitch")
    file, link = _configure(folder)
    options = ["--no-p4", "--device-id", "1", "--", "--cpu-port", "510", "--grpc-server-addr", f"unix:{folder}/switch.sock"]
    with (
        _running([switch, *options], folder / "switch.log"),
        _running([sys.executable, "-m", "frontage", "up", file], folder / "controller.log") as process,
    ):
        _wait_for_api(process, folder / "controller.log")
        yield link


def _configure(folder: Path) -> tuple[Path, str]:
    """Write the configuration and the store; returns the file, and the address of the console that logs in."""
    store = f"sqlite:///{folder}/mapping.db"
    token, entry = generate("operator", Role.OPERATOR)
    (folder / "tokens.toml").write_text(f"{entry}\n")
    (port,) = reserve_ports(1)
    text = EXAMPLE.read_text().replace("127.0.0.1:9559 ", f"unix:{folder}/switch.sock").replace("../..", str(REPOSITORY))
    text = re.sub(r"(?m)^mapping:.*$", "", text)
    text = text.replace("\ndispatchers:\n", f"{_MORE_SITES}\ndispatchers:\n").replace("\nservers:\n", f"{_MORE_VIPS}\nservers:\n")
    sites = ", ".join(f"{{ site: {site}, capacity: 100 }}" for site in range(FRANKFURT, SINGAPORE + 1))
    text += _SECTIONS.format(store=store, moving=MOVING, planned=PLANNED, sites=sites, port=port)
    file = folder / "artemis.yaml"
    file.write_text(text)
    _fill(store)
    return file, log_in_link(f"127.0.0.1:{port}", token)


def _fill(name: str) -> None:
    """Write replicas, round-trip times and moves, as dispatchers and the controller that places services write them."""
    store, now = Store(name, window=300.0), time.time()
    for site in range(FRANKFURT, SINGAPORE + 1):
        services = [EVERYWHERE, *([MOVING] if site == FRANKFURT else []), *([PLANNED] if site == MONTREAL else [])]
        replicas = [Replica(site, 800 * site - 400 + i, service, "::1", 0.0, 1.0, True) for i, service in enumerate(services)]
        store.set_replicas(site, replicas, now)
    samples = [
        Sample(parse(prefix), site, 1000.0 * rtt) for prefix, rtts in _RTTS.items() for site, rtt in enumerate(rtts, FRANKFURT)
    ]
    store.add_samples(samples, now)
    _write_moves(store, now)
    store.close()


def _write_moves(store: Store, now: float) -> None:
    holder = "1@test"
    lease = store.acquire_lease(holder, now, 0.0)
    assert lease is not None
    since = {"since": 0, "heard": {}, "news": False, "asked": None}
    move = {"added": [TOKYO], "removed": [FRANKFURT], "begun": True}
    moving = {"service": MOVING, "number": 7, "epoch": now, "handshakes_per_second": 12.0, "active": [FRANKFURT], "next": move}
    moving |= {"move": {"shown": 6, "decided": 7, "active": None}, **since}
    change = {"added": [SAO_PAULO], "removed": [], "begun": False}
    planned = {"service": PLANNED, "number": 7, "epoch": now, "handshakes_per_second": 3.0, "active": [MONTREAL], "next": change}
    planned |= {"move": {"shown": 2, "decided": 2, "active": 3}, **since}
    with store.publishing(holder, lease) as (connection, version):
        stages = {FRANKFURT: SiteStage(Stage.LEAVING, now), TOKYO: SiteStage(Stage.STARTING, now)}
        store.write_placement(connection, version, MOVING, {}, stages)
        store.write_placement(connection, version, PLANNED, {}, {MONTREAL: SiteStage(Stage.ACTIVE, now)})
        store.write_documents(connection, version, {MOVING: moving, PLANNED: planned})


@contextmanager
def _running(words: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        end(process)


def _wait_for_api(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT
    while "serving the API at " not in (said := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise NodeError(f"the controller did not start: {said.strip()[-LAST_BYTES:]}")
        time.sleep(0.1)
