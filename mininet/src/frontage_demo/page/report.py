# SPDX-License-Identifier: Apache-2.0
"""The report of `make demo QDSR=1`: a self-contained page that shows who sent what, and when it arrived."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib import resources
from itertools import pairwise

from frontage_testbed.datacentre.settings import Settings

from .drawing import legend, paths, shares, waterfall
from .loads import Load

TITLES = {"direct": "with hand-off", "proxied": "as a proxy"}
"""Titles of the page's forms."""


def render(settings: Settings, loads: Sequence[Load], missing: Sequence[str], screen: bytes | None) -> str:
    """Return the page as HTML.

    `missing` are the clients that are not installed; `screen` is a screenshot as WebP.
    """
    data = resources.files("frontage_demo").joinpath("data")
    style = data.joinpath("report.css").read_text() + data.joinpath("page.css").read_text()
    parts = [
        "<h1>One connection, many servers</h1>",
        _verdict(loads),
        _introduction(loads),
        _screen(screen),
        _table(loads),
        _shares(loads),
        _waterfalls(loads),
        _settings(settings, loads, missing),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Frontage demo: QDSR</title>'
        f"<style>\n{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _verdict(loads: Sequence[Load]) -> str:
    failures, objects = sum(load.failures for load in loads), sum(len(load.objects) for load in loads)
    if failures:
        return f'<p class="verdict bad">{failures} of {objects} objects did not arrive unchanged over HTTP/3.</p>'
    return f'<p class="verdict good">All {objects} objects of {len(loads)} page loads arrived unchanged over HTTP/3.</p>'


def _introduction(loads: Sequence[Load]) -> str:
    pictures = len(loads[0].objects) - 1
    return (
        f"<p>Clients fetched a page of {pictures} pictures over <em>one</em> QUIC connection to one virtual IP address with a load balancer behind it. Each picture is on one of "
        f"{len(loads[0].bodies) - 1} real servers. Every client loaded the page twice:</p>"
        '<div class="pair">'
        f"<div>{paths(True)}<h3>With hand-off</h3><p>The balancer keeps the connection and delegates each request to a real server. The real server sends the picture directly to the client, from the "
        "balancer's address and encrypted as part of the same connection (QDSR, USENIX ATC 2024). Clients do not notice.</p></div>"
        f"<div>{paths(False)}<h3>As a proxy</h3><p>The balancer fetches the same pictures from the same servers and forwards them, as a reverse proxy does. Every byte crosses the balancer's link "
        "twice.</p></div></div>"
    )


def _screen(screen: bytes | None) -> str:
    if screen is None:
        return ""
    data = base64.b64encode(screen).decode()
    return (
        "<h2>The page in Chromium</h2><p>A picture has the colour of its real server. Whatever its path, the browser sees one site, one connection and one address.</p>"
        f'<img class="screen" alt="The page in the browser" src="data:image/webp;base64,{data}">'
    )


def _table(loads: Sequence[Load]) -> str:
    balancer, *servers = loads[0].bodies
    head = "".join(f"<th>{escape(name)}<br>(KB)</th>" for name in servers)
    rows = []
    for load in loads:
        sent = "".join(f"<td>{load.bodies[name] / 1e3:.0f}</td>" for name in servers)
        rows.append(
            f"<tr><td>{escape(load.client)}</td><td>{TITLES[load.form]}</td><td>{load.seconds * 1e3:.0f}</td><td>{load.handed} of {len(load.objects) - 1}</td>"
            f"<td>{load.bodies[balancer] / 1e3:.0f}</td>{sent}</tr>"
        )
    return (
        "<h2>Results</h2><p>Bytes of bodies, by each server's own metrics (<code>frontage_cclb7_quic_body_bytes_total</code>, <code>frontage_real_server_body_bytes_total</code>). "
        "The balancer always sends the page itself.</p>"
        f'<div class="scroll"><table><thead><tr><th>client</th><th>form</th><th>page<br>(ms)</th><th>pictures from<br>real servers</th><th>balancer {escape(balancer)}<br>(KB)</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{_findings(loads)}"
    )


def _findings(loads: Sequence[Load]) -> str:
    """Return a sentence for each client."""
    findings = []
    for direct, proxied in _pairs(loads):
        pictures, name = len(direct.objects) - 1, escape(direct.client)
        if not direct.handed:
            findings.append(
                f"<li><strong>{name}</strong>: no picture was delegated. The balancer could delegate no part of this connection, and acted as a proxy.</li>"
            )
            continue
        balancer = next(iter(direct.wire))
        times = proxied.seconds / max(direct.seconds, 1e-9)
        less = proxied.wire[balancer] / max(direct.wire[balancer], 1)
        findings.append(
            f"<li><strong>{name}</strong>: {direct.handed} of {pictures} pictures came from real servers. The page took {direct.seconds * 1e3:.0f} ms instead of {proxied.seconds * 1e3:.0f} ms "
            f"({times:.1f} times faster), and the balancer sent {less:.0f} times fewer bytes to the client.</li>"
        )
    return f"<ul>{''.join(findings)}</ul>"


def _shares(loads: Sequence[Load]) -> str:
    rows = {f"{load.client}, {TITLES[load.form]}": load.wire for load in loads}
    return (
        "<h2>Packets by sender</h2><p>Bytes of all packets to the client by the switch port on which they arrived, handshakes and acknowledgments included. Packets of real "
        f"servers have the balancer's address; the controller has configured which port may send for which service.</p>{legend(list(loads[0].bodies))}{shares('Bytes by sender', rows)}"
    )


def _waterfalls(loads: Sequence[Load]) -> str:
    parts = [
        "<h2>Arrival of each picture</h2><p>One row per object in the page's order: pale from its request to its first byte, solid until its last, in its sender's colour. Both "
        f"forms have the same scale. Hover over a row for its figures.</p>{legend(list(loads[0].bodies))}"
    ]
    for pair in _pairs(loads):
        last = max(load.seconds for load in pair)
        drawn = "".join(
            f"<div><h3>{escape(load.client)}, {TITLES[load.form]}: {load.seconds * 1e3:.0f} ms</h3>{waterfall(f'{load.client}, {TITLES[load.form]}', load, last)}</div>"
            for load in pair
        )
        parts.append(f'<div class="pair">{drawn}</div>')
    return "".join(parts)


def _settings(settings: Settings, loads: Sequence[Load], missing: Sequence[str]) -> str:
    size = sum(item.bytes for item in loads[0].objects)
    entries = {
        "seed": str(settings.seed),
        "page": f"{len(loads[0].objects) - 1} pictures, {size / 1e6:.1f} MB",
        "links": f"{settings.server_rate / 1e6:g} Mbit/s for each server and the balancer; edge switch to clients {settings.bottleneck_rate / 1e6:g} Mbit/s",
        "propagation": f"{settings.delay * 1e3:g} ms each way between client and servers, and between balancer and real servers",
        "transport": "QUIC version 1 over IPv6, cubic; balancer and real servers are noq",
        "not installed": ", ".join(missing) or "none",
    }
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries.items())
    return (
        f"<h2>Settings</h2><dl>{rows}</dl><p class='soft'>The clients measure the times: browsers by Resource Timing, where a request begins when the browser passes it to the network, and "
        "frontage-h3-client by its clock. A browser paints and decodes on the same processors that run all servers, so its times vary by tens of milliseconds.</p>"
    )


def _pairs(loads: Sequence[Load]) -> list[tuple[Load, Load]]:
    """Return the two loads of each client that has both."""
    return [(one, other) for one, other in pairwise(loads) if one.client == other.client]
