# SPDX-License-Identifier: Apache-2.0
"""``frontage placement``: shows where services run by their demand, and why.

The command imports the store's libraries when it runs, so that other commands start without them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, fail, load_config, out, service_name

if TYPE_CHECKING:
    from frontage.mapping.demand.moves import SiteStage

_TOP = 10


def placement(
    service: Annotated[
        str | None, typer.Argument(help="The name of a service; all placed services if absent.", callback=service_name)
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show the demand of placed services by region, their replicas with the reasons, and what the next epoch changes."""
    from frontage.mapping.errors import StoreError
    from frontage.mapping.store.store import Store

    found = load_config(config, as_json=as_json)
    if found.end_users is None or found.placement is None:
        fail(f"{config}: the section placement is missing: add it, with `services` and `sites`", as_json=as_json)
    names = [item.name for item in found.placement.services]
    if service is not None and service not in names:
        fail(f"service {service!r} is not placed by demand: use one of: {', '.join(names)}", as_json=as_json)
    try:
        store = Store(found.end_users.store, window=found.end_users.window)
        try:
            documents, placements, present = store.documents(), store.placements(), store.present_sites()
        finally:
            store.close()
    except StoreError as error:
        fail(error, as_json=as_json)
    known = {item.id: item.name for item in found.sites}
    shown = [
        _state(name, documents.get(name), placements.get(name, {}), present.get(name, set()))
        for name in names
        if service in (None, name)
    ]
    if as_json:
        out.print_json(json.dumps({"ok": True, "services": shown}))
        return
    for state in shown:
        _print(state, known)


def _state(name: str, document: dict[str, Any] | None, stages: dict[int, SiteStage], present: set[int]) -> dict[str, Any]:
    """Return what is known of one service, without the placer's own state."""
    hidden = {"heard", "news", "asked", "since", "service"}
    public = {key: value for key, value in (document or {}).items() if key not in hidden}
    sites = {
        site: {"stage": str(item.stage), "since": item.since, "present": site in present} for site, item in sorted(stages.items())
    }
    return {"service": name, "measured": "epoch" in public, "sites": sites, "present": sorted(present), **public}


def _print(state: dict[str, Any], known: dict[int, str]) -> None:
    def site(number: int | None) -> str:
        return "-" if number is None else f"{number} {known.get(number, '')}".rstrip()

    def line(text: str) -> None:
        out.print(text, highlight=False, markup=False, soft_wrap=True)

    line(state["service"])
    if not state["measured"]:
        where = ", ".join(site(one) for one in state["present"]) or "no site"
        why = "no site has reported demand from regions with known RTTs"
        line(f"  runs wherever it has replicas: {where}; {state.get('error', why)}")
        return
    epoch = datetime.fromtimestamp(state["epoch"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    beta = "unbounded" if state["beta"] is None else f"{state['beta']:.3g}"
    line(
        f"  epoch {state.get('number', 0)}, {epoch}: {state['handshakes_per_second']:.1f} handshakes per second, "
        f"{state['updates_per_second']:g} updates; "
        f"replicas: {state['replicas']} ({state['bound']}; beta {beta})"
    )
    if error := state.get("error"):
        line(f"  the last epoch placed nothing: {error}")
    load = state["load"]
    if load["shortfall"]:
        line(
            f"  demand exceeds mu times the capacity by {load['shortfall']:.0f} handshakes per second: each service has min_replicas"
        )
    demand = Table(
        "region", "clients", "share", "per second", "served by site", "RTT", box=None, title="\n  demand", title_justify="left"
    )
    for row in state["demand"][:_TOP]:
        rtt = "-" if row["rtt_us"] is None else f"{row['rtt_us'] / 1000:.1f} ms"
        cells = (row["region"], " ".join(row["prefixes"]) or "-", f"{100 * row['share']:.1f} %")
        demand.add_row(*map(str, cells), f"{row['handshakes_per_second']:.1f}", site(row["site"]), rtt)
    out.print(demand)
    reasons = {one["site"]: one["reason"] for one in state["planned"]}
    sites = Table("site", "stage", "replica accepts", "why", "load latency", box=None, title="\n  replicas", title_justify="left")
    # A service that has never moved has no stages.
    stages = {number: one["stage"] for number, one in state["sites"].items()} or dict.fromkeys(state["active"], "active")
    for number in sorted({*stages, *reasons}):
        sites.add_row(
            site(number),
            stages.get(number, "-"),
            "yes" if number in state["present"] else "no",
            reasons.get(number, "not wanted"),
            _wait(state, number),
        )
    out.print(sites)
    if move := state.get("move"):
        line(f"  {_last(move)}")
    line(f"  {_next(state, site)}\n")


def _wait(state: dict[str, Any], site: int) -> str:
    waited = state.get("load_latency_us", {}).get(str(site))
    return "-" if waited is None else f"{waited / 1000:.1f} ms"


def _last(move: dict[str, Any]) -> str:
    arrived = "not active yet" if move["active"] is None else f"active in {move['active']}"
    return f"last move: wanted by demand in epoch {move['shown']}, decided in {move['decided']}, {arrived}"


def _next(state: dict[str, Any], site: Any) -> str:
    change = state["next"]
    if not change["added"] and not change["removed"]:
        return "the next epoch changes nothing if demand stays as it is"
    parts = [
        f"{word} {', '.join(site(one) for one in change[what])}"
        for word, what in (("adds", "added"), ("removes", "removed"))
        if change[what]
    ]
    what = " and ".join(parts)
    if change["begun"]:
        return f"begun with epoch {state.get('number', 0)}: {what}"
    if change.get("held"):
        shorter = "-" if change["gain_us"] is None else f"{change['gain_us'] / 1000:.1f}"
        gain = f"{shorter} ms with a standard error of {change['gain_error_us'] / 1000:.1f} ms"
        return f"the next epoch {what}, if the gain in latency is significant: so far it is {gain}"
    if change["handshakes_missing"]:
        return f"the next epoch {what}, after {change['handshakes_missing']} more handshakes"
    return f"the next epoch {what}"
