"""The one configuration file: `Config`, of which `network`, `vips` and others are sections, and `load`, which reads and checks it.

What every field means stands in its description; ``controller/README.md`` lists them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from frontage import checks
from frontage import records as records_settings
from frontage.artemis import Dispatcher, OwnSite, Site
from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN, CookieKey
from frontage.explain import explain
from frontage.fields import (
    Listen,
    SecretField,
    parse_secret,
)
from frontage.limits import MAX_PORT_ID
from frontage.mapping.settings import EndUsers, Placement, in_folder
from frontage.model import Model
from frontage.network import Neighbor, Port, Route
from frontage.qdsr import RealServer
from frontage.records import Records
from frontage.vips import Server, Vip
from frontage.yamlfile import Document, DocumentError, Problem, parse
from frontage.yamlfile import Path as FieldPath


class Pipeline(Model):
    p4info: Path = Field(description="the path of the compiled program's P4Info in text form", examples=["frontage.p4info.txtpb"])
    # The field's name in the file is ``json``; BaseModel has a method of that name.
    json_file: Path = Field(alias="json", description="the path of the compiled program's BMv2 JSON", examples=["frontage.json"])


class Device(Model):
    address: str = Field(
        description="host:port of the switch's P4Runtime server, or unix:PATH", examples=["127.0.0.1:9559"], min_length=1
    )
    device_id: int = Field(1, ge=1, lt=1 << 64, description="the P4Runtime device id", examples=[1])
    election_id: int = Field(
        100, ge=1, lt=1 << 64, description="the first election id; a second controller stands by below it", examples=[100]
    )
    cpu_port: int = Field(ge=1, le=MAX_PORT_ID, description="the port number the switch was given as CPU port", examples=[510])
    pipeline: Pipeline = Field(description="the compiled P4 program")


class Key(Model):
    id: int = Field(ge=1, lt=1 << 32, description="a key id; the newest key has the largest and seals", examples=[1])
    secret: SecretField | None = Field(
        None,
        repr=False,
        description=f"{SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in hexadecimal",
        examples=["the output of `openssl rand -hex 32`"],
    )
    secret_file: Path | None = Field(
        None, description="the path of a file that holds the secret in hexadecimal", examples=["key-1.hex"]
    )

    @model_validator(mode="after")
    def _one_source(self) -> Key:
        if (self.secret is None) == (self.secret_file is None):
            raise ValueError("needs either a secret or a secret_file")
        return self


class Metrics(Model):
    address: Listen = Field("127.0.0.1:9464", description="host:port of the Prometheus endpoint", examples=["127.0.0.1:9464"])


class Fallback(Model):
    idle_timeout: int = Field(
        120, ge=1, le=65535, description="the seconds after which an idle entry of the connection table expires", examples=[120]
    )


class Handshake(Model):
    timeout: int = Field(
        10, ge=1, le=65535, description="the seconds after which an idle entry of the handshake table expires", examples=[10]
    )


class Config(Model):
    device: Device = Field(description="the switch")
    ports: tuple[Port, ...] = Field(min_length=1, description="the switch's ports")
    routes: tuple[Route, ...] = Field((), description="prefixes behind a next hop")
    neighbors: tuple[Neighbor, ...] = Field((), description="hosts on the switch's own links")
    vips: tuple[Vip, ...] = Field((), description="the services")
    servers: tuple[Server, ...] = Field((), description="the servers, each one endpoint of one VIP")
    real_servers: tuple[RealServer, ...] = Field((), description="the real servers of QDSR, which send in the names of servers")
    site: OwnSite | None = Field(None, description="this site, where there are others")
    sites: tuple[Site, ...] = Field((), description="the sites; this one may be among them")
    dispatchers: tuple[Dispatcher, ...] = Field((), description="this site's dispatchers")
    mapping: Path | None = Field(
        None, description="the path of the end-user mapping in JSON; none if absent", examples=["mapping.json"]
    )
    keys: tuple[Key, ...] = Field(min_length=1, max_length=2, description="one or two cookie keys of consecutive ids")
    metrics: Metrics | None = Field(None, description="the Prometheus endpoint; none if absent")
    fallback: Fallback = Field(default_factory=Fallback, description="the connection table of flows that carry no cookie")
    handshake: Handshake = Field(default_factory=Handshake, description="the handshake table of QUIC")
    end_users: EndUsers | None = Field(None, description="how the end-user mapping is computed; it is not, if absent")
    placement: Placement | None = Field(
        None, description="which services' sites follow their demand; each is wherever it has replicas, if absent"
    )
    records: Records | None = Field(None, description="the record store, for `frontage records serve`; none if absent")
    control_socket: Path | None = Field(
        None, description="unix socket through which commands reach the running controller; beside this file if absent"
    )

    @property
    def cookie_keys(self) -> tuple[CookieKey, ...]:
        """The keys with their secrets, oldest first; the last one seals."""
        keys = [CookieKey(key.id, key.secret) for key in self.keys if key.secret is not None]
        return tuple(sorted(keys, key=lambda key: key.id))

    @property
    def hosts(self) -> tuple[Neighbor, ...]:
        """All who are on the switch's own links: neighbors, and real servers at each of their addresses."""
        return (
            *self.neighbors,
            *(Neighbor(address=address, port=r.port, mac=r.mac) for r in self.real_servers for address in r.addresses),
        )

    @property
    def other_sites(self) -> tuple[Site, ...]:
        return tuple(site for site in self.sites if self.site is not None and site.id != self.site.id)

    @property
    def site_ids(self) -> frozenset[int]:
        """Of all sites, the own one included."""
        own = {self.site.id} if self.site is not None else set()
        return frozenset(own | {site.id for site in self.sites})

    @property
    def decided(self) -> frozenset[int]:
        """Numbers of the services of Artemis that the address alone decides: those that the switch maps."""
        return frozenset(vip.artemis.id for vip in self.vips if vip.artemis is not None and vip.artemis.decided)

    @property
    def servers_by_vip(self) -> dict[str, list[Server]]:
        """Every VIP's name, with its servers."""
        result: dict[str, list[Server]] = {vip.name: [] for vip in self.vips}
        for server in self.servers:
            result[server.vip].append(server)
        return result


class ConfigError(Exception):
    """What is wrong with a configuration file: one line a problem, ``file:line:column: field: what; fix``."""

    def __init__(self, file: Path, problems: Sequence[Problem]):
        self.file = file
        self.problems = sorted(problems, key=lambda p: (p.position.line, p.position.column) if p.position else (0, 0))
        super().__init__("\n".join(format_problem(file, problem) for problem in self.problems))


def format_problem(file: Path, problem: Problem) -> str:
    where = str(file) if problem.position is None else f"{file}:{problem.position.line}:{problem.position.column}"
    field = format_path(problem.path)
    return f"{where}: {field + ': ' if field else ''}{problem.what}; {problem.fix}"


def format_path(path: FieldPath) -> str:
    """``servers[2].sid``"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def load(file: Path | str) -> Config:
    """Read and check a configuration file. Raises ConfigError, which names every problem that was found."""
    file = Path(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(file, [Problem((), "no such file", "give the path of a configuration file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "make it a readable UTF-8 text file")]) from None
    return loads(text, file)


def loads(text: str, file: Path) -> Config:
    """Check the text of a configuration file; ``file`` names it in errors, and paths in it are relative to its folder."""
    try:
        document = parse(text)
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of fields"
        raise ConfigError(file, [Problem((), what, "begin with `device:`, `ports:`, `vips:`", document.position(()))])
    try:
        config = Config.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, Config)) from None
    config, problems = _resolve(config, file.parent, document)
    for found in checks.check(config):
        locate = document.key_position if found.at_key else document.position
        problems.append(Problem(found.path, found.what, found.fix, locate(found.path)))
    if problems:
        raise ConfigError(file, problems)
    return config


def _resolve(config: Config, folder: Path, document: Document) -> tuple[Config, list[Problem]]:
    """Make paths absolute and read the secret files."""
    problems: list[Problem] = []
    keys: list[Key] = []
    for i, key in enumerate(config.keys):
        if key.secret_file is not None:
            file = folder / key.secret_file
            path: FieldPath = ("keys", i, "secret_file")
            try:
                secret = parse_secret(file.read_text(encoding="ascii").strip())
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(path, f"cannot be read: {error}", "write the secret there", document.position(path)))
                continue
            except ValueError as error:
                what = f"what {file} holds is {error}"
                fix = f"write {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in hexadecimal there"
                problems.append(Problem(path, what, fix, document.position(path)))
                continue
            key = key.model_copy(update={"secret": secret, "secret_file": file})
        keys.append(key)
    pipeline = config.device.pipeline
    pipeline = pipeline.model_copy(
        update={"p4info": (folder / pipeline.p4info).absolute(), "json_file": (folder / pipeline.json_file).absolute()}
    )
    update: dict[str, Any] = {
        "keys": tuple(keys),
        "device": config.device.model_copy(update={"pipeline": pipeline}),
    }
    if config.mapping is not None:
        update["mapping"] = (folder / config.mapping).absolute()
    if config.end_users is not None:
        update["end_users"] = in_folder(config.end_users, folder)
    if config.records is not None:
        update["records"] = records_settings.in_folder(config.records, folder)
    if config.control_socket is not None:
        update["control_socket"] = (folder / config.control_socket).absolute()
    return config.model_copy(update=update), problems
