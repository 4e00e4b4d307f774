# SPDX-License-Identifier: Apache-2.0
"""Checks of the switches of a fleet, and of each switch with its own sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.devices import FleetDevice
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the contradictions between switches."""
    devices = config.devices
    names = ((("devices", i, "name"), device.name) for i, device in enumerate(devices))
    yield from duplicates(names, 'duplicate device name "{}"', "rename one of the devices")
    addresses = ((("devices", i, "address"), (device.address, device.device_id)) for i, device in enumerate(devices))
    yield from duplicates(addresses, "duplicate address and device id {}", "give each device its own")
    yield from _checkers(config)
    yield from _zones(config)
    if not devices and not config.ports:
        yield Finding(("ports",), "missing", "add the switch's ports")
    for i, device in enumerate(devices):
        if device.ports is None and not config.ports:
            yield Finding(("devices", i, "ports"), "missing", "add the switch's ports, here or for all switches in `ports`")


def _zones(config: Config) -> Iterator[Finding]:
    """Yield zones without a switch, whose servers would never get connections, and uses of zones without any."""
    zones = sorted({zone for zone in (device.zone for device in config.devices or (config.device,)) if zone is not None})
    for i, server in enumerate(config.servers):
        if server.zone is not None and server.zone not in zones:
            yield unknown_name(("servers", i, "zone"), "zone", server.zone, zones, "the zones of switches")
    if not zones:
        for i, vip in enumerate(config.vips):
            if vip.spill_over is not None:
                fix = "add `zone` to `device` or `devices`, and to the servers"
                yield Finding(("vips", i, "spill_over"), "no switch has a zone", fix, at_key=True)


def _checkers(config: Config) -> Iterator[Finding]:
    """Yield the addresses that the checkers of several switches share: the address tells which switch a check passes through."""
    if len(config.devices) > 1 and config.health is not None and sum(device.health is None for device in config.devices) > 1:
        what = "several switches have the same checker, so a check would not tell which of them it passes through"
        yield Finding(("health",), what, "give each of `devices` its own `health`", at_key=True)
        return
    addresses = (
        (("devices", i, "health", "addresses", j), address)
        for i, device in enumerate(config.devices)
        if device.health is not None
        for j, address in enumerate(device.health.addresses)
    )
    yield from duplicates(addresses, "another switch's checker has the address {}, too", "give each checker its own addresses")


def check_each(config: Config, checks: Callable[[Config], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of ``checks`` for each switch, with the paths of its own sections, and each finding once."""
    if not config.devices:
        yield from checks(config)
        return
    seen: set[Finding] = set()
    for i, (device, own) in enumerate(zip(config.devices, config.switches, strict=True)):
        for finding in checks(own):
            placed = _place(finding, i, device)
            if placed not in seen:
                seen.add(placed)
                yield placed


def _place(finding: Finding, index: int, device: FleetDevice) -> Finding:
    """Return the finding with its path in the file: a device has some sections itself."""
    section, *rest = finding.path or ("",)
    if section == "device":
        path = ("devices", index, *rest)
    elif section in FleetDevice.OWN_SECTIONS and getattr(device, str(section)) is not None:
        path = ("devices", index, *finding.path)
    else:
        return finding
    return Finding(path, finding.what, finding.fix, finding.at_key)
