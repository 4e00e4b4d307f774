# SPDX-License-Identifier: Apache-2.0
"""The command line of ``frontage``."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from frontage.cli.common import DEFAULT_CONFIG, ConfigArgument, ConfigOption, JsonOption, err, example, fail, load_config, out
from frontage.config import ConfigError, edit, load
from frontage.config.devices import DeviceState
from frontage.config.key_file import OWNER_ONLY, key_file, replace
from frontage.config.vips import Policy, ServerState
from frontage.mapping.cli import mapping as mapping_cli
from frontage.mapping.cli import placement as placement_cli
from frontage.service.control import ControlError, ask, is_listening, socket_path

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    help="The Frontage controller: programs the edge switch from a configuration file.",
)
app.add_typer(mapping_cli.app, name="mapping")
app.command(epilog=example("frontage placement films.example -c frontage.yaml"))(placement_cli.placement)


def _add_records() -> None:
    """Add the commands of the distribution ``frontage-records``, or one that says how to install it."""
    if find_spec("frontage_records") is not None:
        from frontage_records.cli import app as records_app

        app.add_typer(records_app, name="records")
        return

    @app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def records(_context: typer.Context) -> None:
        """Run the record store, which is not installed."""
        fail("frontage records: the record store is not installed: run `pip install frontage-records`")


_add_records()

REQUEST_TIMEOUT = 65.0
"""Seconds that a command waits for the running controller: a little longer than the controller waits for the switch."""


def main() -> None:
    app()


@app.command(epilog=example("frontage up frontage.yaml"))
def up(
    config: ConfigArgument,
    election_id: Annotated[
        int | None, typer.Option(min=1, help="The first election id to offer, instead of device.election_id of the file.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run the controller: install CONFIG in the switch and follow changes of the file. Stand by if another controller is primary."""
    from frontage.service.daemon import Service

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("asyncio").setLevel(logging.INFO)

    async def run() -> None:
        service = Service(config, election_id=election_id)
        task = asyncio.create_task(service.run())
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await task

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise typer.Exit(0) from None
    except (ConfigError, ControlError, OSError) as error:
        fail(error)
    except BaseExceptionGroup as group:
        errors = group.subgroup((ControlError, OSError))
        if errors is None:
            raise
        fail("; ".join(str(error) for error in errors.exceptions))


@app.command(epilog=example("frontage check frontage.yaml"))
def check(config: ConfigArgument, as_json: JsonOption = False) -> None:
    """Check CONFIG without installing it. Each problem is one line: file:line:column: field: problem: fix."""
    from frontage.state import steering_file

    try:
        found = load(config)
        steering_file.for_config(found)
    except ConfigError as error:
        if as_json:
            problems = [
                {
                    "line": problem.position.line if problem.position else None,
                    "column": problem.position.column if problem.position else None,
                    "path": list(problem.path),
                    "what": problem.what,
                    "fix": problem.fix,
                }
                for problem in error.problems
            ]
            out.print_json(json.dumps({"ok": False, "problems": problems}))
        else:
            err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if as_json:
        out.print_json(json.dumps({"ok": True, "vips": len(found.vips), "servers": len(found.servers)}))
    else:
        out.print(f"{config}: {len(found.vips)} VIPs, {len(found.servers)} servers: no problems found", highlight=False)


@app.command(epilog=example("frontage route 198.51.100.7 -c frontage.yaml"))
def route(
    address: Annotated[str, typer.Argument(help="An IPv4 or IPv6 address.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show where each switch sends packets to ADDRESS, and the routes that it has learned for it. Needs the running controller."""
    from frontage.cli import show

    found = load_config(config, as_json=as_json)
    try:
        routes = ask(socket_path(found, config), {"command": "route", "address": address}, REQUEST_TIMEOUT)["routes"]
    except ControlError as error:
        fail(error, as_json=as_json)
    if as_json:
        out.print_json(json.dumps(routes))
    else:
        show.render_routes(out, routes)


@app.command(epilog=example("frontage status -c frontage.yaml --json"))
def status(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Show the state of the switch compared with CONFIG, the traffic of VIPs and servers, drops by reason, and keys."""
    from frontage.cli import show

    found = load_config(config, as_json=as_json)
    try:
        path = socket_path(found, config)
        if is_listening(path):
            result: dict[str, Any] = ask(path, {"command": "status"}, REQUEST_TIMEOUT)["status"]
        else:
            result = asyncio.run(show.read_directly(found))
    except ControlError as error:
        fail(error, as_json=as_json)
    if as_json:
        out.print_json(json.dumps(result))
    else:
        show.render(out, result)


@app.command("add-server", epilog=example("frontage add-server web5 --vip shop --address 10.0.0.15 --port 8080"))
def add_server(
    name: Annotated[str, typer.Argument(help="The name of the new server.")],
    vip: Annotated[str, typer.Option(help="The name of its VIP.")],
    address: Annotated[str, typer.Option(help="The address of the server (DIP).")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="The TCP or UDP port of the server.")],
    sid: Annotated[int | None, typer.Option(help="The server id; a free one by default.")] = None,
    weight: Annotated[int | None, typer.Option(help="The weight among the servers of the VIP.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Add a server to a VIP. Established connections keep their servers."""
    _change(
        config,
        lambda text: edit.add_server(text, name=name, vip=vip, address=address, port=port, sid=sid, weight=weight),
        f"server {name} added to {vip}",
        as_json=as_json,
    )


@app.command(epilog=example("frontage drain web2"))
def drain(
    name: Annotated[str, typer.Argument(help="The server's name.")],
    undo: Annotated[bool, typer.Option("--undo", help="Make the server active again.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Stop new connections to a server. Established connections continue."""
    state = ServerState.ACTIVE if undo else ServerState.DRAINING
    _change(config, lambda text: edit.set_server_state(text, name, state), f"server {name} is {state}", as_json=as_json)


@app.command("drain-switch", epilog=example("frontage drain-switch edge2 --wait 60"))
def drain_switch(
    name: Annotated[str, typer.Argument(help="The name of one of `devices`.")],
    undo: Annotated[bool, typer.Option("--undo", help="Announce VIPs through the switch again.")] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until no packets to VIPs pass through the switch.")] = 60.0,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Withdraw the routes through a switch, and wait until its traffic is gone. Connections continue through other switches."""
    from frontage.cli.drain import wait_until_idle

    state = DeviceState.ACTIVE if undo else DeviceState.DRAINING
    _change(config, lambda text: edit.set_device_state(text, name, state), f"switch {name} is {state}", as_json=as_json)
    if undo or wait == 0:
        return
    try:
        path = socket_path(load_config(config, as_json=as_json), config)
        is_idle = is_listening(path) and wait_until_idle(path, name, wait)
    except ControlError as error:
        fail(error, as_json=as_json, code=2)
    if not is_idle:
        fail(f"packets to VIPs still pass through {name} after {wait:g} s: see `frontage status`", as_json=as_json, code=2)
    if not as_json:
        out.print(f"no packets to VIPs pass through {name}", highlight=False)


@app.command("remove-server", epilog=example("frontage remove-server web2"))
def remove_server(
    name: Annotated[str, typer.Argument(help="The server's name.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Remove a server. This breaks its connections: drain it first, and wait until it has none."""
    _change(config, lambda text: edit.remove_server(text, name), f"server {name} removed", as_json=as_json)


@app.command("set-policy", epilog=example("frontage set-policy shop cclb4 --alpha 0.5"))
def set_policy(
    vip: Annotated[str, typer.Argument(help="The VIP's name.")],
    policy: Annotated[Policy, typer.Argument(help="How new connections are assigned to servers.")],
    alpha: Annotated[float | None, typer.Option(min=0, max=1, help="The weight of N_AF in the score of cclb4.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Change the policy of a VIP. It applies to new connections."""
    _change(config, lambda text: edit.set_policy(text, vip, policy, alpha), f"policy of {vip} is {policy}", as_json=as_json)


@app.command("rotate-key", epilog=example("frontage rotate-key -c frontage.yaml"))
def rotate_key(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Seal cookies with a new key. The previous key stays valid; a connection that is idle for two rotations loses its server."""
    _change(config, lambda text: edit.rotate_key(text, config.resolve().parent), "a new key is active", as_json=as_json)


@app.command(epilog=example("frontage keys frontage.yaml -o keys.toml"))
def keys(
    config: ConfigArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file, readable by its owner only; standard output by default."),
    ] = None,
) -> None:
    """Write the key file for QUIC servers (`keys` in their configuration), after the running controller has installed the keys.

    The switch drops packets that a server seals with a key that the switch does not have.
    """
    found = load_config(config, as_json=False)
    try:
        path = socket_path(found, config)
        if is_listening(path):
            ask(path, {"command": "apply"}, REQUEST_TIMEOUT)
        else:
            err.print("no controller is running: install these keys in the switch before you give them to servers", soft_wrap=True)
    except ControlError as error:
        fail(f"nothing has been written: the switch does not have the keys of {config}: {error}")
    if output is None:
        sys.stdout.write(key_file(found))
        return
    try:
        replace(output, key_file(found), OWNER_ONLY)
    except OSError as error:
        fail(f"{output}: cannot be written: {error}: make the folder writable")


def _change(config: Path, change: edit.Edit, done: str, *, as_json: bool) -> None:
    """Edit the file and wait until the running controller has installed it."""
    try:
        found = edit.change_file(config, change)
    except (ConfigError, edit.EditError) as error:
        fail(f"nothing has been changed: {error}", as_json=as_json)
    installed, missing = False, []
    try:
        path = socket_path(found, config)
        if is_listening(path):
            missing = ask(path, {"command": "apply"}, REQUEST_TIMEOUT)["missing"]
            installed = True
    except ControlError as error:
        fail(f"{config}: changed ({done}), but not installed: {error}", as_json=as_json, code=2)
    if as_json:
        out.print_json(json.dumps({"ok": True, "changed": done, "installed": installed, "missing": missing}))
    elif missing:
        out.print(f"{done}: installed, except in {', '.join(missing)}, which will get it when reachable", highlight=False)
    elif installed:
        out.print(f"{done}: installed", highlight=False)
    else:
        out.print(f"{done}: written to {config}: no controller is running, `frontage up {config}` installs it", highlight=False)
