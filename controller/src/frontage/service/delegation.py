# SPDX-License-Identifier: Apache-2.0
"""The part of a sample about real servers: what they send by the counters of switches, and their streams by agents' metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from frontage.config import Config
from frontage.config.agent_metrics import AgentMetrics
from frontage.config.real_servers import RealServer, balancers
from frontage.config.vips import Server
from frontage.p4.entities import Count
from frontage.service.agents import AgentReading
from frontage.service.streams import Streams

MAX_NAMES = 16
"""Unknown real servers of an agent that a sample lists."""

ReadingOf = Callable[[AgentMetrics], AgentReading]
"""Returns the last reading of an agent's metrics."""


def helpers(config: Config) -> dict[int, list[RealServer]]:
    """Return the real servers that send for a server, by its SID."""
    found: dict[int, list[RealServer]] = {}
    if not config.real_servers:
        return found
    for real_server, servers in balancers(config.real_servers, config.servers):
        for server in servers:
            found.setdefault(server.sid, []).append(real_server)
    return found


def endpoints(config: Config, vip: str) -> set[AgentMetrics]:
    """Return the metrics of the agents that count streams of a VIP: those of servers for which real servers send."""
    sids = helpers(config)
    return {s.metrics for s in config.servers_by_vip[vip] if s.metrics is not None and s.sid in sids}


def describe_delegation(
    config: Config,
    server: Server,
    real_servers: Sequence[RealServer],
    sent: Mapping[tuple[str, int], Count],
    reading_of: ReadingOf,
) -> dict[str, Any]:
    """Return the real servers of a server, with their streams if its agent counts them.

    ``sent`` has the packets on behalf of servers by port name and SID.
    """
    agent: dict[str, Any] | None = None
    streams: dict[str, Streams] = {}
    if server.metrics is not None and real_servers:
        reading = reading_of(server.metrics)
        # An agent may serve several VIPs, which do not all have all of its real servers.
        streams, unmatched = reading.delegated.match(config.real_servers)
        agent = _describe_reading(reading, unmatched)
    return {
        "agent": agent,
        "real_servers": [
            {
                "name": real_server.name,
                "port": real_server.port,
                **asdict(sent.get((real_server.port, server.sid), Count())),
                "streams": asdict(streams[real_server.name]) if real_server.name in streams else None,
            }
            for real_server in real_servers
        ],
    }


def _describe_reading(reading: AgentReading, unmatched: Sequence[str]) -> dict[str, Any]:
    age = None if reading.time is None else round(max(0.0, time.time() - reading.time), 3)
    return {"time": reading.time, "age": age, "error": reading.error, "unmatched": unmatched[:MAX_NAMES]}
