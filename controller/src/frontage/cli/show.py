# SPDX-License-Identifier: Apache-2.0
"""The text output of ``frontage status``."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_REGIONS = 5
"""Regions shown per VIP."""
_RENEWAL_DAYS = 14
"""Days before expiry at which a certificate should be renewed."""


def render(console: Console, status: dict[str, Any]) -> None:
    """Print a status."""
    _render_controller(console, status)
    _render_store(console, status.get("store"))
    _render_difference(console, status)
    _render_bgp(console, status.get("bgp"))
    _render_learned(console, status.get("learned"))
    _render_discovery(console, status.get("discovery", []))
    _render_vips(console, status)
    _render_limits(console, status)
    _render_syn_defence(console, status)
    _render_servers(console, status)
    _render_real_servers(console, status)
    _render_neighbors(console, status)
    _render_demand(console, status)
    parts = {
        "outcomes": "steering",
        "drops": "drops by reason",
        "refusals": "dropped by AIFO, by minimum remaining time in us",
        "claims": "connection table",
        "handshakes": "handshake table",
        "segments": "maximum segment sizes of remote servers",
    }
    for part, title in parts.items():
        _render_counts(console, title, status.get(part, {}))


def _render_store(console: Console, store: dict[str, Any] | None) -> None:
    """Print the controllers that share a store."""
    if store is None:
        return
    leader = f"leader {store['leader']} (term {store['term']})" if store["leader"] else "no leader"
    console.print(f"store       {store['bucket']}: {leader}; this is {store['name']}", highlight=False, markup=False)
    for member in store["members"]:
        behind = f", {member['behind']} lines behind" if member["behind"] else ""
        console.print(f"            {member['name']}: seen {member['seen']:g} s ago{behind}", highlight=False, markup=False)
    if store["error"]:
        console.print(f"            {store['error']}", style="red", markup=False, highlight=False, soft_wrap=True)


def _render_controller(console: Console, status: dict[str, Any]) -> None:
    controller, devices = status["controller"], status["devices"]
    if len(devices) == 1:
        (device,) = devices
        console.print(f"switch      {device['address']}, device {device['device_id']}", highlight=False)
    else:
        _render_devices(console, devices)
    role = f", {controller['role']}" if controller["role"] else ""
    console.print(f"controller  {controller['phase']}{role}", highlight=False)
    for name in ("error", "config_error"):
        if controller[name]:
            console.print(f"            {controller[name]}", style="red", markup=False, highlight=False, soft_wrap=True)
    for source, why in status.get("checker", {}).get("frozen", {}).items():
        if why:
            console.print(
                f"checks      from {source} are frozen: {why}", style="red", markup=False, highlight=False, soft_wrap=True
            )
    keys = [f"{key['id']} (epoch {key['epoch']}{', seals' if key['seals'] else ''})" for key in status["keys"]]
    console.print(f"keys        {', '.join(keys)}", highlight=False)
    for certificate in status.get("certificates", []):
        text = f"certificate {certificate['use']}: expires in {certificate['days_left']:.1f} days"
        if certificate["error"]:
            text += f"; {certificate['error']}"
        is_urgent = certificate["error"] or certificate["days_left"] < _RENEWAL_DAYS
        console.print(text, style="red" if is_urgent else None, markup=False, highlight=False, soft_wrap=True)


def _render_devices(console: Console, devices: list[dict[str, Any]]) -> None:
    table = Table("switch", "address", "state", "zone", "controller", "entries", "differences", "drops", box=None)
    for device in devices:
        controller, difference = device["controller"], device.get("difference")
        role = f", {controller['role']}" if controller["role"] else ""
        entries, differences = "-", "-"
        if difference is not None:
            entries = str(difference["entries"])
            differences = str(difference["missing"] + difference["different"] + difference["unexpected"])
        drops = sum(count["packets"] for count in device["drops"].values()) if "drops" in device else "-"
        where = f"{device['address']}, device {device['device_id']}"
        state = f"{controller['phase']}{role}"
        table.add_row(device["name"], where, device["state"], _zone(device), state, entries, differences, str(drops))
    console.print(table)


def _zone(device: dict[str, Any]) -> str:
    """Return the zone of a switch, and the VIPs for which it uses servers of other zones."""
    spills = f", spills {', '.join(device['spilling'])}" if device["spilling"] else ""
    return f"{device['zone'] or '-'}{spills}"


def _render_difference(console: Console, status: dict[str, Any]) -> None:
    difference = status.get("difference")
    if difference is None:
        return
    if not difference["tables"]:
        console.print(f"installed   all {difference['entries']} entries", highlight=False)
        return
    table = Table(
        "table", "missing", "different", "unexpected", title="differences from the configuration", title_justify="left", box=None
    )
    for name, counts in difference["tables"].items():
        table.add_row(name, str(counts["missing"]), str(counts["different"]), str(counts["unexpected"]))
    console.print(table)


def _render_bgp(console: Console, bgp: dict[str, Any] | None) -> None:
    if bgp is None:
        return
    console.print(f"announced   {', '.join(bgp['prefixes']) or 'nothing'}", highlight=False)
    if bgp["error"]:
        console.print(f"            {bgp['error']}", style="red", markup=False, highlight=False, soft_wrap=True)
    for verb, found in (("withholds", bgp["withheld"]), ("does not resolve", bgp["unresolved"])):
        for name, items in found.items():
            console.print(f"            {name} {verb} {', '.join(items)}", style="yellow", markup=False, highlight=False)
    table = _table("BGP", "router", "AS", "switch", "learns", "session", "prefixes", "routes are")
    for neighbor in bgp["neighbors"]:
        export = bgp["exports"].get(neighbor["device"], "-")
        who = (neighbor["address"], str(neighbor["asn"]), neighbor["device"], neighbor["announce"])
        table.add_row(*who, neighbor["state"], str(neighbor["sent"]), export)
    console.print(table)


def _render_learned(console: Console, learned: dict[str, Any] | None) -> None:
    if learned is None:
        return
    if learned["error"]:
        console.print(f"learned     {learned['error']}", style="red", markup=False, highlight=False, soft_wrap=True)
    table = _table("learned routes", "switch", "IPv4", "IPv6", "installed", "groups", "rejected", "routers")
    for name, device in learned["devices"].items():
        rejected = ", ".join(f"{reason} {count}" for reason, count in device["rejected"].items() if count) or "-"
        routers = ", ".join(
            f"{router['address']} {'up' if router['is_up'] else 'down'} {router['routes']}"
            + (f" ({router['stale']} stale)" if router["stale"] else "")
            for router in device["routers"]
        )
        counts = [str(device["learned"][family]) for family in ("ipv4", "ipv6")]
        table.add_row(name, *counts, str(device["installed"]), str(device["groups"]), rejected, routers)
    console.print(table)


def render_routes(console: Console, routes: list[dict[str, Any]]) -> None:
    """Print the answer to the command `route`."""
    for one in routes:
        best = one["route"]
        if best is None:
            console.print(f"{one['device']}: no route", highlight=False)
        else:
            hops = ", ".join(hop + (" (down)" if hop in one["down"] else "") for hop in best["next_hops"])
            port = f", port {best['port']}" if best["port"] else ""
            console.print(f"{one['device']}: {best['prefix']} by {hops}{port} ({best['source']})", highlight=False)
        for path in one["paths"]:
            marks = "".join((", used" if path["is_used"] else "", ", stale" if path["is_stale"] else ""))
            autonomous = " ".join(map(str, path["as_path"])) or "none"
            console.print(
                f"    from {path['router']}: next hop {path['next_hop']}, AS path {autonomous}, local preference "
                f"{path['local_pref']}, MED {path['med']}{marks}",
                highlight=False,
                soft_wrap=True,
            )


def _render_discovery(console: Console, sources: list[dict[str, Any]]) -> None:
    if not sources:
        return
    table = _table("discovery", "VIP", "source", "servers", "gone", "error")
    for source in sources:
        row = (source["vip"], source["kind"], str(source["servers"]), str(source["gone"]), source["error"] or "")
        table.add_row(*row)
    console.print(table)


def _traffic(item: dict[str, Any]) -> list[str]:
    return [_count(item, direction) for direction in ("up", "down")]


def _count(item: dict[str, Any], direction: str) -> str:
    return f"{item[direction]['packets']} / {item[direction]['bytes']}" if direction in item else "-"


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=f"\n{title}", title_justify="left", box=None)


def _render_vips(console: Console, status: dict[str, Any]) -> None:
    table = _table("VIPs", "name", "address", "policy", "alpha", "active", "draining", "up pkts / bytes", "down pkts / bytes")
    for vip in status["vips"]:
        alpha = f"{vip['alpha']:g}" if vip["policy"].startswith("cclb4") else "-"
        where = f"{vip['address']} {vip['protocol']} port {vip['port']}"
        table.add_row(vip["name"], where, vip["policy"], alpha, str(vip["active"]), str(vip["draining"]), *_traffic(vip))
    console.print(table)


def _render_limits(console: Console, status: dict[str, Any]) -> None:
    limited = [vip for vip in status["vips"] if vip["limits"] is not None]
    if not limited:
        return
    table = _table("limits", "VIP", "limit", "per second", "client prefixes", "dropped pkts / bytes")
    units = {"connections": "connections", "bandwidth": "bit"}
    for vip in limited:
        for kind, limit in vip["limits"].items():
            rate, prefixes = limit.get("rate"), limit.get("prefixes")
            if rate or prefixes:
                shown = f"{rate} {units[kind]}" if rate else "-"
                table.add_row(vip["name"], kind, shown, str(prefixes or "-"), _count(limit, "dropped"))
    console.print(table)


def _render_syn_defence(console: Console, status: dict[str, Any]) -> None:
    defended = [vip for vip in status["vips"] if vip["syn_defence"] is not None]
    if not defended:
        return
    kinds = ("passed", "answered", "completed", "refused")
    table = _table("SYN defence", "VIP", "mode", "state", "SYNs/s", "threshold", *kinds)
    for vip in defended:
        defence = vip["syn_defence"]
        state = "answers SYNs" if defence["answering"] else "SYNs reach servers"
        counts = (str(defence["packets"].get(kind, "-")) for kind in kinds)
        table.add_row(vip["name"], defence["mode"], state, str(defence.get("rate", "-")), str(defence["threshold"]), *counts)
    console.print(table)


def _render_servers(console: Console, status: dict[str, Any]) -> None:
    table = _table("servers", "name", "VIP", "address", "SID", "weight", "state", "health", "up pkts / bytes", "down pkts / bytes")
    for server in status["servers"]:
        where = f"{server['address']} port {server['port']}"
        if tunnel := server["encapsulation"]:
            where += f" by {tunnel['kind']} to {tunnel['endpoint']}"
        weight = str(server["weight"]) + (f" at {server['share']} %" if server["share"] < 100 else "")
        row = (server["name"], server["vip"], where, str(server["sid"]), weight, server["state"])
        table.add_row(*row, _health(server), *_traffic(server))
    console.print(table)


def _health(server: dict[str, Any]) -> str:
    """Return the health of a server, since when it has it, and the last error."""
    health = server.get("health")
    if health is None:
        return "-"
    since = f" for {health['seconds']:.0f} s" if health["state"] != "unknown" else ""
    used = ", but used" if health["state"] == "failed" and health["used"] and server["state"] == "active" else ""
    error = f": {escape(health['error'])}" if health["error"] else ""
    faults = [f"; fails through {name}: {escape(why or 'unknown')}" for name, why in health["path_faults"].items()]
    return f"{health['state']}{since}{used}{error}{''.join(faults)}"


def _render_real_servers(console: Console, status: dict[str, Any]) -> None:
    if not status["real_servers"]:
        return
    table = _table("real servers", "name", "port", "addresses", "sends for", "down pkts / bytes")
    for real_server in status["real_servers"]:
        listed = (", ".join(real_server[field]) for field in ("addresses", "for"))
        table.add_row(real_server["name"], real_server["port"], *listed, _count(real_server, "down"))
    console.print(table)


def _render_neighbors(console: Console, status: dict[str, Any]) -> None:
    if not status["neighbors"]:
        return
    table = _table("neighbors")
    for name in ("switch", "address", "port", "MAC", "state", "age", "conflicts"):
        table.add_column(name, no_wrap=name in ("address", "MAC"))
    for neighbor in status["neighbors"]:
        age = neighbor.get("age")
        what = (neighbor["device"], neighbor["address"], neighbor["port"], neighbor["mac"] or "-", neighbor["state"])
        table.add_row(*what, "-" if age is None else f"{age:.0f} s", str(neighbor.get("conflicts", "-")))
    console.print(table)
    for neighbor in status["neighbors"]:
        if claimant := neighbor.get("claimant"):
            console.print(f"{neighbor['address']} is also claimed by {claimant}", style="red", highlight=False)
        if rejected := neighbor.get("rejected"):
            console.print(f"{neighbor['address']}: {rejected} rejected messages", style="red", highlight=False)


def _render_demand(console: Console, status: dict[str, Any]) -> None:
    demand = {vip: regions for vip, regions in status.get("demand", {}).items() if regions}
    if not demand:
        return
    table = _table("demand", "VIP", "handshakes", f"top {_REGIONS} regions")
    for vip, regions in demand.items():
        most = sorted(regions.items(), key=lambda item: -item[1])[:_REGIONS]
        shown = ", ".join(f"{f'region {region}' if int(region) else 'no region'}: {count}" for region, count in most)
        table.add_row(vip, str(sum(regions.values())), shown)
    console.print(table)


def _render_counts(console: Console, title: str, counts: dict[str, Any]) -> None:
    seen = {name: count for name, count in counts.items() if count["packets"]}
    if not seen:
        return
    table = _table(title, "", "packets", "bytes")
    for name, count in seen.items():
        table.add_row(name, str(count["packets"]), str(count["bytes"]))
    console.print(table)
