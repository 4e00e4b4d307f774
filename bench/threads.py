# SPDX-License-Identifier: Apache-2.0
"""Packets per second of two threads in one pipeline, in process, beside those of one thread: router, filter, TCP and QUIC."""

from __future__ import annotations

from rows import Row, finish, rates_of_each, row
from sites import frontage, packet_filter, quic, router


def measure() -> list[Row]:
    sites = {"router": router(), "acl_10000": packet_filter(10_000), "frontage": frontage(), "quic": quic()}
    measured = rates_of_each("threads", *(str(site.write()) for site in sites.values()))
    rows = []
    for name, rates in zip(sites, measured, strict=True):
        rows.append(row(f"threads_{name}_pps", rates["two"], "packets/s", "one thread", rates["one"]))
        one, two = rates["one_per_core"], rates["two_per_core"]
        rows.append(row(f"threads_{name}_pps_per_core", two, "packets/s of core time", "one thread", one))
        rows.append(row(f"threads_{name}_speedup", rates["speedup"], "times one thread"))
    return rows


if __name__ == "__main__":
    finish(measure)
