# SPDX-License-Identifier: Apache-2.0
"""``frontage plan``, ``apply``, ``history`` and ``undo``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, out
from frontage.cli.request import Requests
from frontage.config.key_file import OWNER_ONLY, replace

_COLOURS = {"none": "dim", "new": "green", "some": "yellow", "breaks": "red"}
_SIGNS = {"add": "+", "change": "~", "remove": "-"}

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog=example("frontage plan new.yaml -o new.plan"))(plan)
    app.command(epilog=example("frontage apply new.plan"))(apply)
    app.command(epilog=example("frontage history --limit 10"))(history)
    app.command(epilog=example("frontage undo 17"))(undo)


def plan(
    context: typer.Context,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new configuration.")],
    entries: Annotated[bool, typer.Option("--entries", help="List the P4Runtime updates, too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the plan for `frontage apply`.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show the changes that NEW would make, the affected connections, and the VIPs that would have no active server."""
    found = _plan(Requests(context, config, as_json), new, entries=entries)
    if output is not None:
        try:
            # The plan contains the configuration, and so its secrets.
            replace(output, json.dumps(found), OWNER_ONLY)
        except OSError as error:
            fail(f"{output}: cannot be written: {error}: make the folder writable", as_json=as_json)
    if as_json:
        out.print_json(json.dumps({name: value for name, value in found.items() if name != "text"}))
    else:
        render_plan(out, found)


def apply(
    context: typer.Context,
    new: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan saved by `frontage plan -o`, or a new configuration.")],
    yes: YesOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Install a plan, unless the configuration or the switches have changed since. For a configuration, show the plan and ask first."""
    requests = Requests(context, config, as_json)
    found = _saved(new)
    if found is None:
        found = _plan(requests, new, entries=False)
        if not as_json:
            render_plan(out, found)
        if not yes:
            _confirm(found["effect"])
    body = {"source": found.get("source", new.name), **{name: found[name] for name in ("base", "text", "switches")}}
    requests.change("POST", "/plans/apply", body)


def history(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The number of changes.")] = 20,
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", help="Show the details of this change.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show who changed the configuration, when, from where, and with which result, newest first."""
    requests = Requests(context, config, as_json)
    found = requests.send("GET", f"/history?limit={limit}" if number is None else f"/history/{number}")
    if as_json:
        out.print_json(json.dumps(found))
        return
    _render_changes(out, found if number is None else [found])
    if number is not None:
        _render_steps(out, found["steps"])


def undo(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="The number of the change in `frontage history`.")],
    yes: YesOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Restore the configuration before change NUMBER. This also undoes later changes; cookie keys are not restored."""
    requests = Requests(context, config, as_json)
    later = [change for change in requests.send("GET", "/history?limit=1000") if change["number"] > number]
    if later and not yes and not as_json:
        _render_changes(out, later)
        if not typer.confirm(f"This also undoes these {len(later)} later changes. Continue?"):
            raise typer.Exit(1)
    requests.change("POST", f"/history/{number}/undo")


def _plan(requests: Requests, new: Path, *, entries: bool) -> dict[str, Any]:
    try:
        text = new.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{new}: cannot be read: {error}: use a configuration file", as_json=requests.as_json)
    found: dict[str, Any] = requests.send("POST", "/plans", {"text": text, "entries": entries})
    return found | {"source": new.name}


def _saved(file: Path) -> dict[str, Any] | None:
    """Return the plan in a file; None if it is not a plan."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"base", "text", "switches"} <= found.keys() else None


def _confirm(effect: str) -> None:
    question = "This breaks established connections. Continue?" if effect == "breaks" else "Continue?"
    if not typer.confirm(question):
        raise typer.Exit(1)


def render_plan(console: Console, found: dict[str, Any]) -> None:
    """Print a plan."""
    if not found["steps"]:
        console.print("no changes in the configuration")
    _render_steps(console, found["steps"])
    for name in found["without_servers"]:
        console.print(f"VIP {name} would have no active server", style="red", highlight=False)
    for name, switch in found["switches"].items():
        counts = f"{switch['insert']} inserts, {switch['modify']} modifies, {switch['delete']} deletes"
        console.print(f"{name}: {counts}", highlight=False)
        for update in switch["updates"] or ():
            match = ", ".join(map(str, update["match"])) or "default"
            line = f"  {update['type']} {update['table']} [{match}]{_action(update)}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _action(update: dict[str, Any]) -> str:
    if update["action"] is None:
        return ""
    params = "secret" if update["params"] is None else ", ".join(map(str, update["params"]))
    meter = "" if update["meter"] is None else " meter {}/s, burst {}".format(*update["meter"])
    return f" -> {update['action']}({params}){meter}"


def _render_steps(console: Console, steps: list[dict[str, Any]]) -> None:
    for step in steps:
        colour = _COLOURS[step["effect"]]
        effect = {"none": "", "new": "new connections", "some": "some connections", "breaks": "breaks connections"}[step["effect"]]
        why = ": ".join(part for part in (effect, step["why"]) if part)
        console.print(
            f"{_SIGNS[step['action']]} {step['kind']} {escape(step['name'])}"
            + (f"  [{colour}]{escape(why)}[/{colour}]" if why else ""),
            highlight=False,
            soft_wrap=True,
        )
        for field in step["fields"]:
            before, after = (field[part] if field[part] is not None else "(not set)" for part in ("before", "after"))
            console.print(f"    {field['name']}: {before} -> {after}", markup=False, highlight=False, soft_wrap=True)


def _render_changes(console: Console, changes: list[dict[str, Any]]) -> None:
    table = Table("change", "time", "author", "from", "what", "result", box=None)
    for change in changes:
        arguments = " ".join(str(value) for value in change["arguments"].values())
        missing = f", except in {', '.join(change['missing'])}" if change["missing"] else ""
        what = f"{change['verb']} {arguments}".strip()
        row = (str(change["number"]), change["time"][:19].replace("T", " "), change["author"], change["origin"], what)
        table.add_row(*map(escape, row), escape((change["result"] or "in progress") + missing))
    console.print(table)
