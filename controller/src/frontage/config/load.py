# SPDX-License-Identifier: Apache-2.0
"""Loading a configuration file: parsing, validation, absolute paths, secrets and checks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from frontage.config import discovery, records
from frontage.config.checks import check
from frontage.config.checks.between_sites import SiteFile, compare
from frontage.config.checks.findings import Finding
from frontage.config.devices import Device
from frontage.config.document import Document, DocumentError, Problem, parse
from frontage.config.document import Path as FieldPath
from frontage.config.errors import ConfigError
from frontage.config.explain import explain
from frontage.config.instances import assign
from frontage.config.schema import Config, ConfigFile
from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN, CookieKey
from frontage.fields import parse_secret
from frontage.mapping.settings import in_folder


def load(file: Path | str) -> Config:
    """Read and check a configuration file.

    Raises ConfigError, which lists every problem.
    """
    file = Path(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(file, [Problem((), "no such file", "give the path of a configuration file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "make it a readable UTF-8 text file")]) from None
    return loads(text, file)


def loads(text: str, file: Path) -> Config:
    """Check the text of a configuration file.

    ``file`` names the text in errors. Paths in the text are relative to its folder. Raises ConfigError.
    """
    try:
        document = parse(text)
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None
    if not isinstance(document.data, dict):
        what = "empty file" if document.data is None else "not a mapping of fields"
        raise ConfigError(file, [Problem((), what, "begin with `device:`, `ports:`, `vips:`", document.position(()))])
    assign(document.data)
    try:
        written = ConfigFile.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, ConfigFile)) from None
    keys, problems = _read_keys(written, file.parent, document)
    fields = {**vars(written), **_absolute_paths(written, file.parent), "cookie_keys": keys}
    config = Config.model_construct(**fields)
    problems += [_problem(finding, document) for finding in check(config)]
    if problems:
        raise ConfigError(file, problems)
    return config


def contradictions(sites: Sequence[SiteFile]) -> list[ConfigError]:
    """Return the contradictions between the configurations of several sites, an error for each file that has any."""
    found: dict[Path, list[Problem]] = {}
    for site, finding in compare(sites):
        document = parse(site.file.read_text(encoding="utf-8"))
        found.setdefault(site.file, []).append(_problem(finding, document))
    return [ConfigError(file, problems) for file, problems in found.items()]


def _problem(finding: Finding, document: Document) -> Problem:
    locate = document.key_position if finding.at_key else document.position
    return Problem(finding.path, finding.what, finding.fix, locate(finding.path))


def _read_keys(config: ConfigFile, folder: Path, document: Document) -> tuple[tuple[CookieKey, ...], list[Problem]]:
    """Return the keys with their secrets, oldest first, and the problems of secret files."""
    problems: list[Problem] = []
    keys: list[CookieKey] = []
    for i, key in enumerate(config.keys):
        if key.secret is not None:
            keys.append(CookieKey(key.id, key.secret))
        if key.secret_file is None:
            continue
        file = folder / key.secret_file
        path: FieldPath = ("keys", i, "secret_file")
        try:
            keys.append(CookieKey(key.id, parse_secret(file.read_text(encoding="ascii").strip())))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(path, f"cannot be read: {error}", "write the secret there", document.position(path)))
        except ValueError as error:
            fix = f"write {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in hexadecimal there"
            problems.append(Problem(path, f"{file}: {error}", fix, document.position(path)))
    return tuple(sorted(keys, key=lambda key: key.id)), problems


def _absolute_paths(config: ConfigFile, folder: Path) -> dict[str, Any]:
    """Return the fields that hold paths, with the paths made absolute: in the file they are relative to its folder."""
    update: dict[str, Any] = {}
    if config.device is not None:
        update["device"] = _with_absolute_paths(config.device, folder)
    if config.devices:
        update["devices"] = tuple(_with_absolute_paths(device, folder) for device in config.devices)
        update["device"] = update["devices"][0].device
    update["keys"] = tuple(
        key if key.secret_file is None else key.model_copy(update={"secret_file": folder / key.secret_file}) for key in config.keys
    )
    if config.mapping is not None:
        update["mapping"] = (folder / config.mapping).absolute()
    if config.end_users is not None:
        update["end_users"] = in_folder(config.end_users, folder)
    update["vips"] = tuple(
        vip if vip.discovery is None else vip.model_copy(update={"discovery": discovery.in_folder(vip.discovery, folder)})
        for vip in config.vips
    )
    update["servers"] = tuple(
        server if server.metrics is None else server.model_copy(update={"metrics": server.metrics.in_folder(folder)})
        for server in config.servers
    )
    if config.bgp is not None:
        update["bgp"] = config.bgp.in_folder(folder)
    if config.records is not None:
        update["records"] = records.in_folder(config.records, folder)
    if config.api is not None:
        update["api"] = config.api.in_folder(folder)
    if config.metrics is not None:
        update["metrics"] = config.metrics.in_folder(folder)
    if config.store is not None:
        update["store"] = config.store.in_folder(folder)
    if config.control_socket is not None:
        update["control_socket"] = (folder / config.control_socket).absolute()
    return update


D = TypeVar("D", bound=Device)


def _with_absolute_paths(device: D, folder: Path) -> D:
    tls = None if device.tls is None else device.tls.in_folder(folder)
    return device.model_copy(update={"pipeline": device.pipeline.in_folder(folder), "tls": tls})
