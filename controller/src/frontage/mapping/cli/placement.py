"""``frontage placement``: where services are by their demand, and why.

The store's libraries are loaded when it is run: no other command waits for them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, fail, load_config, out

if TYPE_CHECKING:
    from frontage.mapping.demand.moves import Place

_TOP = 10


def placement(
    service: Annotated[str | None, typer.Argument(help="A service's name; all that are placed, if absent.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show where services are by their demand: the demand by region, the replicas and why, and what the next epoch changes."""
    from frontage.mapping.errors import StoreError
    from frontage.mapping.store.store import Store

    found = load_config(config, as_json=as_json)
    if found.end_users is None or found.placement is None:
        fail(f"{config}: has no placement; add the section, with `services` and `sites`", as_json=as_json)
    names = [one.name for one in found.placement.services]
    wanted = service.lower().removesuffix(".") if service is not None else None
    if wanted is not None and wanted not in names:
        fail(f"{service} is not placed by demand; placed are: {', '.join(names)}", as_json=as_json)
    try:
        store = Store(found.end_users.store, window=found.end_users.window)
        try:
            views, places, present = store.views(), store.places(), store.present()
        finally:
            store.close()
    except StoreError as error:
        fail(error, as_json=as_json)
    known = {one.id: one.name for one in found.sites}
    shown = [
        _state(name, views.get(name), places.get(name, {}), present.get(name, set())) for name in names if wanted in (None, name)
    ]
    if as_json:
        out.print_json(json.dumps({"ok": True, "services": shown}))
        return
    for state in shown:
        _print(state, known)


def _state(name: str, view: dict[str, Any] | None, places: dict[int, Place], present: set[int]) -> dict[str, Any]:
    """What is known of one service."""
    hidden = {"heard", "news", "asked", "since", "service"}
    told = {key: value for key, value in (view or {}).items() if key not in hidden}
    stages = {
        site: {"stage": str(one.stage), "since": one.since, "present": site in present} for site, one in sorted(places.items())
    }
    return {"service": name, "measured": "epoch" in told, "sites": stages, "present": sorted(present), **told}


def _print(state: dict[str, Any], known: dict[int, str]) -> None:
    def site(number: int | None) -> str:
        return "-" if number is None else f"{number} {known.get(number, '')}".rstrip()

    def line(text: str) -> None:
        out.print(text, highlight=False, markup=False, soft_wrap=True)

    line(state["service"])
    if not state["measured"]:
        where = ", ".join(site(one) for one in state["present"]) or "no site"
        why = "no site has reported demand for it from regions whose RTTs are known"
        line(f"  wherever it has replicas: {where}; {state.get('error', why)}")
        return
    epoch = datetime.fromtimestamp(state["epoch"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    beta = "unbounded" if state["beta"] is None else f"{state['beta']:.3g}"
    line(
        f"  epoch {state.get('number', 0)}, {epoch}: {state['handshakes_per_second']:.1f} handshakes a second, "
        f"{state['updates_per_second']:g} updates; "
        f"replicas: {state['replicas']} ({state['bound']}; beta {beta})"
    )
    if error := state.get("error"):
        line(f"  the last epoch placed nothing: {error}")
    load = state["load"]
    if load["shortfall"]:
        line(f"  all services take {load['shortfall']:.0f} a second more than mu of the sites' capacity: each has min_replicas")
    demand = Table(
        "region", "clients", "share", "a second", "goes to site", "RTT", box=None, title="\n  demand", title_justify="left"
    )
    for one in state["demand"][:_TOP]:
        rtt = "-" if one["rtt_us"] is None else f"{one['rtt_us'] / 1000:.1f} ms"
        about = (one["region"], " ".join(one["prefixes"]) or "-", f"{100 * one['share']:.1f} %")
        demand.add_row(*map(str, about), f"{one['handshakes_per_second']:.1f}", site(one["site"]), rtt)
    out.print(demand)
    reasons = {one["site"]: one["reason"] for one in state["planned"]}
    sites = Table("site", "stage", "replica accepts", "why", "load latency", box=None, title="\n  replicas", title_justify="left")
    # A service that was never moved has no stages yet.
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
    return f"last move: demand asked for it in epoch {move['shown']}, decided in {move['decided']}, {arrived}"


def _next(state: dict[str, Any], site: Any) -> str:
    change = state["next"]
    if not change["added"] and not change["removed"]:
        return "the next epoch changes nothing, if demand stays"
    parts = [
        f"{word} {', '.join(site(one) for one in change[what])}"
        for word, what in (("adds", "added"), ("leaves", "removed"))
        if change[what]
    ]
    what = " and ".join(parts)
    if change["begun"]:
        return f"begun with epoch {state.get('number', 0)}: {what}"
    if change.get("held"):
        shorter = "-" if change["gain_us"] is None else f"{change['gain_us'] / 1000:.1f}"
        about = f"{shorter} ms shorter, give or take {change['gain_error_us'] / 1000:.1f}"
        return f"the next epoch {what}, if that is no chance: so far the way would be {about}"
    if change["handshakes_missing"]:
        return f"the next epoch {what}, after {change['handshakes_missing']} more handshakes"
    return f"the next epoch {what}"
