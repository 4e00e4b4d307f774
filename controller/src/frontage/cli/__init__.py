# SPDX-License-Identifier: Apache-2.0
"""The command line of ``frontage``."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from frontage.cli import addresses
from frontage.cli import backup as backup_cli
from frontage.cli import plan as plan_cli
from frontage.cli.common import DEFAULT_CONFIG, ConfigArgument, ConfigOption, JsonOption, err, example, fail, out
from frontage.cli.names import complete_devices, complete_servers, complete_vips
from frontage.cli.request import KeyRequests, Requests, remember
from frontage.config import ConfigError, contradictions, load
from frontage.config.checks.between_sites import SiteFile
from frontage.config.devices import DeviceState
from frontage.config.key_file import OWNER_ONLY, replace
from frontage.config.vips import Policy, ServerState
from frontage.mapping.cli import mapping as mapping_cli
from frontage.mapping.cli import placement as placement_cli
from frontage.observe import causes, tracing
from frontage.observe.logs import Format, configure

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    help="The Frontage controller: programs the edge switch from a configuration file.",
)
app.callback()(remember)
app.add_typer(mapping_cli.app, name="mapping")
app.command(epilog=example("frontage placement films.example -c frontage.yaml"))(placement_cli.placement)
plan_cli.add_to(app)
addresses.add_to(app)
backup_cli.add_to(app)


def _add_records() -> None:
    """Add the commands of the package ``frontage-records``, or one that says how to install it."""
    if find_spec("frontage_records") is not None:
        from frontage_records.cli import app as records_app

        app.add_typer(records_app, name="records")
        return

    @app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def records(_context: typer.Context) -> None:
        """Run the record store (not installed)."""
        fail("frontage records: the record store is not installed: run `pip install frontage-records`")


_add_records()


def main() -> None:
    app()


@app.command(epilog=example("frontage up frontage.yaml"))
def up(
    config: ConfigArgument,
    election_id: Annotated[
        int | None, typer.Option(min=1, help="The first election id to offer, instead of device.election_id of the file.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The name among controllers that share a store (`store`); the host name by default.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    log_format: Annotated[
        Format, typer.Option(envvar="FRONTAGE_LOG_FORMAT", help="The format of the log: text, or one JSON object per line.")
    ] = Format.TEXT,
) -> None:
    """Run the controller: install CONFIG in the switch, and follow changes to the file. Stand by if another controller is primary."""
    from frontage.api.server import ListenError
    from frontage.service.daemon import Service

    configure(log_format, verbose=verbose)
    try:
        tracing.start(causes.trace_id)
    except tracing.TracingError as error:
        fail(error)

    async def run() -> None:
        service = Service(config, election_id=election_id, name=name or socket.gethostname())
        task = asyncio.create_task(service.run())
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await task

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise typer.Exit(0) from None
    except (ConfigError, ListenError, OSError) as error:
        fail(error)
    except BaseExceptionGroup as group:
        errors = group.subgroup((ListenError, OSError))
        if errors is None:
            raise
        fail("; ".join(str(error) for error in errors.exceptions))
    finally:
        tracing.stop()


@app.command(epilog=example("frontage check frankfurt.yaml tokyo.yaml"))
def check(
    configs: Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="The configuration files of one or more sites.")],
    as_json: JsonOption = False,
) -> None:
    """Check CONFIG without installing it. With several files, also check that the sites agree with each other.

    Each problem is one line: file:line:column: field: problem: fix.
    """
    sites, errors = _loaded(configs)
    errors = errors or (contradictions(sites) if len(sites) > 1 else [])
    if errors:
        if as_json:
            problems = [problem for error in errors for problem in error.as_dicts()]
            out.print_json(json.dumps({"ok": False, "problems": problems}))
        else:
            for error in errors:
                err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)
    if as_json:
        sizes = {"vips": sum(len(s.config.vips) for s in sites), "servers": sum(len(s.config.servers) for s in sites)}
        out.print_json(json.dumps({"ok": True, **sizes}))
    else:
        for site in sites:
            counts = f"{len(site.config.vips)} VIPs, {len(site.config.servers)} servers"
            out.print(f"{site.file}: {counts}: no problems found", highlight=False)


def _loaded(files: Sequence[Path]) -> tuple[list[SiteFile], list[ConfigError]]:
    """Return the configurations, and the errors of files that cannot be installed."""
    from frontage.state import steering_file

    sites, errors = list[SiteFile](), list[ConfigError]()
    for file in files:
        try:
            found = load(file)
            steering_file.for_config(found)
            sites.append(SiteFile(file, found))
        except ConfigError as error:
            errors.append(error)
    return sites, errors


@app.command(epilog=example("frontage route 198.51.100.7 -c frontage.yaml"))
def route(
    context: typer.Context,
    address: Annotated[str, typer.Argument(help="An IPv4 or IPv6 address.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show the route of each switch to ADDRESS, and the learned routes to it. Requires a running controller."""
    from frontage.cli import show

    try:
        ip_address(address)
    except ValueError:
        fail(f"invalid address {address}: use an IPv4 or IPv6 address", as_json=as_json)
    routes = Requests(context, config, as_json).send("GET", f"/routes/{address}")
    if as_json:
        out.print_json(json.dumps(routes))
    else:
        show.render_routes(out, routes)


@app.command(epilog=example("frontage status -c frontage.yaml --json"))
def status(
    context: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    watch: Annotated[float | None, typer.Option(min=0.2, metavar="SECONDS", help="Refresh at this interval until Ctrl-C.")] = None,
) -> None:
    """Show the state of the switch compared with CONFIG, the traffic of VIPs and servers, drops by reason, and keys."""
    from frontage.cli import show

    requests = Requests(context, config, as_json)
    while True:
        result = requests.send("GET", "/status")
        if as_json and watch is None:
            out.print_json(json.dumps(result))
        elif as_json:
            out.print(json.dumps(result), markup=False, highlight=False, soft_wrap=True)
        else:
            if watch is not None:
                out.clear()
            show.render(out, result)
        if watch is None:
            return
        time.sleep(watch)


@app.command("add-server", epilog=example("frontage add-server web5 --vip shop --address 10.0.0.15 --port 8080"))
def add_server(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of the new server.")],
    vip: Annotated[str, typer.Option(help="The name of its VIP.", autocompletion=complete_vips)],
    address: Annotated[str, typer.Option(help="The address of the server (DIP).")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="The TCP or UDP port of the server.")],
    sid: Annotated[int | None, typer.Option(help="The server id; a free one by default.")] = None,
    weight: Annotated[int | None, typer.Option(help="The weight among the servers of the VIP.")] = None,
    zone: Annotated[str | None, typer.Option(help="The zone of the server; every zone by default.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Add a server to a VIP. Established connections keep their servers."""
    fields = {"name": name, "vip": vip, "address": address, "port": port, "sid": sid, "weight": weight, "zone": zone}
    body = {field: value for field, value in fields.items() if value is not None}
    Requests(context, config, as_json).change("POST", "/servers", body)


@app.command(epilog=example("frontage drain web2"))
def drain(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The server's name.", autocompletion=complete_servers)],
    undo: Annotated[bool, typer.Option("--undo", help="Make the server active again.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Stop new connections to a server. Established connections continue."""
    state = ServerState.ACTIVE if undo else ServerState.DRAINING
    Requests(context, config, as_json).change("PATCH", f"/servers/{quote(name, safe='')}", {"state": state})


@app.command("set-weight", epilog=example("frontage set-weight web2 4"))
def set_weight(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The server's name.", autocompletion=complete_servers)],
    weight: Annotated[int, typer.Argument(min=1, help="The weight among the servers of its VIP.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Change the weight of a server. It applies to new connections."""
    Requests(context, config, as_json).change("PATCH", f"/servers/{quote(name, safe='')}", {"weight": weight})


@app.command("drain-switch", epilog=example("frontage drain-switch edge2 --wait 60"))
def drain_switch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of one of `devices`.", autocompletion=complete_devices)],
    undo: Annotated[bool, typer.Option("--undo", help="Announce VIPs through the switch again.")] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until no packets to VIPs pass through the switch.")] = 60.0,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Withdraw the routes through a switch, and wait until its traffic is gone. Connections continue through other switches."""
    from frontage.cli.drain import wait_until_idle

    state = DeviceState.ACTIVE if undo else DeviceState.DRAINING
    requests = Requests(context, config, as_json)
    requests.change("PATCH", f"/devices/{quote(name, safe='')}", {"state": state})
    if undo or wait == 0:
        return
    if not requests.is_running or not wait_until_idle(requests, name, wait):
        fail(f"packets to VIPs still pass through {name} after {wait:g} s: see `frontage status`", as_json=as_json, code=2)
    if not as_json:
        out.print(f"no packets to VIPs pass through {name}", highlight=False)


@app.command("remove-server", epilog=example("frontage remove-server web2"))
def remove_server(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The server's name.", autocompletion=complete_servers)],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Remove a server. This breaks its connections: drain the server first, and wait until they have ended."""
    Requests(context, config, as_json).change("DELETE", f"/servers/{quote(name, safe='')}")


@app.command("set-policy", epilog=example("frontage set-policy shop cclb4 --alpha 0.5"))
def set_policy(
    context: typer.Context,
    vip: Annotated[str, typer.Argument(help="The VIP's name.", autocompletion=complete_vips)],
    policy: Annotated[Policy, typer.Argument(help="How new connections are assigned to servers.")],
    alpha: Annotated[float | None, typer.Option(min=0, max=1, help="The weight of N_AF in the score of cclb4.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Change the policy of a VIP. It applies to new connections."""
    body = {"policy": policy, **({} if alpha is None else {"alpha": alpha})}
    Requests(context, config, as_json).change("PATCH", f"/vips/{quote(vip, safe='')}", body)


@app.command("rotate-key", epilog=example("frontage rotate-key -c frontage.yaml"))
def rotate_key(
    context: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    force: Annotated[bool, typer.Option("--force", help="Rotate even if servers do not have the newest key.")] = False,
    wait: Annotated[float, typer.Option(min=0, max=60, help="The seconds to wait for servers that fetch keys.")] = 30,
) -> None:
    """Seal cookies with a new key. The previous key remains valid; connections that are idle for two rotations lose their server."""
    requests = Requests(context, config, as_json)
    requests.change("POST", "/keys?force=true" if force else "/keys")
    if not requests.is_running:
        return
    found = requests.send("GET", f"/keys/holders?wait={wait:g}")
    if found["late"]:
        late = ", ".join(found["late"])
        err.print(
            f"servers that do not have key {found['newest']} yet: {late}: check `frontage follow-keys` on them", soft_wrap=True
        )


@app.command(
    "follow-keys",
    epilog=example("frontage --server URL --certificate film1.pem follow-keys film1 -o keys.toml"),
)
def follow_keys(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of the server, as in `api.certificates`.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The key file, readable by its owner only.")],
    reload: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Makes the server reload the file, such as `systemctl reload NAME`.")
    ] = None,
) -> None:
    """Keep the key file of a QUIC server current. Runs on the server's machine until it is stopped."""
    from frontage.api.client import RequestError
    from frontage.cli.follow_keys import FollowError, KeyFollower, follow

    if context.find_root().obj is None:
        fail("follow-keys fetches keys over the network: use --server and --certificate")
    configure(Format.TEXT, verbose=False)
    follower = KeyFollower(name, output, reload, KeyRequests(context).send)
    follow(follower.step, (FollowError, RequestError))


@app.command(epilog=example("frontage keys frontage.yaml -o keys.toml"))
def keys(
    context: typer.Context,
    config: ConfigArgument = DEFAULT_CONFIG,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file, readable by its owner only; standard output by default."),
    ] = None,
) -> None:
    """Write the key file for QUIC servers (`keys` in their configuration), once the running controller has installed the keys.

    The switch drops packets that a server has sealed with an unknown key.
    """
    requests = Requests(context, config)
    text: str = requests.send("GET", "/keys/file", failed="no file written: the switches do not have the keys: ")
    if not requests.is_running:
        err.print("no controller is running: install these keys in the switch before you copy them to servers", soft_wrap=True)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        replace(output, text, OWNER_ONLY)
    except OSError as error:
        fail(f"{output}: cannot be written: {error}: make the folder writable")


@app.command(epilog=example("frontage token monitor --may viewer"))
def token(
    name: Annotated[str, typer.Argument(help="The owner of the token, shown as the author in the journal.")],
    may: Annotated[
        str, typer.Option(help="The role of the owner: viewer, operator or admin; each includes the previous ones.")
    ] = "viewer",
) -> None:
    """Generate an API token, and print it with its entry for the file `api.tokens`. The entry contains only a hash of the token."""
    from frontage.api.access import Role
    from frontage.tokens import generate

    if may not in list(Role):
        fail(f'unknown role "{may}": use one of {", ".join(Role)}')
    try:
        secret, entry = generate(name, Role(may))
    except ValueError as error:
        fail(error)
    out.print(f"# Authorization: Bearer {secret}", highlight=False, markup=False, soft_wrap=True)
    out.print(entry, highlight=False, markup=False, soft_wrap=True)
