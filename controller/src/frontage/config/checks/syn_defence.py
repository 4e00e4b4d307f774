# SPDX-License-Identifier: Apache-2.0
"""Checks of the defence against SYN floods."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding
from frontage.config.schema import Config
from frontage.config.syn_defence import MIN_MSS
from frontage.config.vips import Protocol


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the VIPs' defences."""
    for i, vip in enumerate(config.vips):
        if vip.syn_defence is None:
            continue
        if vip.protocol is not Protocol.TCP:
            what = f"VIP {vip.name} uses UDP, which has no SYNs"
            yield Finding(("vips", i, "syn_defence"), what, "remove it", at_key=True)
        least = MIN_MSS[vip.address.version]
        if vip.syn_defence.mss is not None and vip.syn_defence.mss < least:
            what = f"{vip.syn_defence.mss} is below the minimum of IPv{vip.address.version}"
            yield Finding(("vips", i, "syn_defence", "mss"), what, f"use {least} or more")
