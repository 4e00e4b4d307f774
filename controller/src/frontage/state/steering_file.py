# SPDX-License-Identifier: Apache-2.0
"""The end-user mapping as a JSON file, with the same lists as dispatchers receive.

{"clients": [{"prefix": "2001:db8:c1::/48", "region": 5}],
 "services": [{"id": 3, "deployment": 7}],
 "mapping": [{"deployment": 7, "sites": [2, 1], "regions": [5]}, {"deployment": 7, "sites": [1], "regions": [0]}]}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from frontage import limits
from frontage.config import Config, ConfigError
from frontage.config.document import Document, DocumentError, Position, Problem
from frontage.config.document import parse as parse_yaml
from frontage.config.explain import explain
from frontage.fields import Model, NetworkField
from frontage.state.steering import EndUserMapping, MappingEntries, MappingError

Region = Annotated[int, Field(ge=0, le=limits.MAX_REGION)]


class Client(Model):
    """The region of a client prefix."""

    prefix: NetworkField = Field(description="an IP prefix without host bits", examples=["2001:db8:c1::/48"])
    region: int = Field(ge=1, le=limits.MAX_REGION, description="the region of the prefix", examples=[5])


class Service(Model):
    """The deployment of a service."""

    id: int = Field(ge=1, le=limits.MAX_SERVICE, description="the service id", examples=[3])
    deployment: int = Field(
        ge=1, le=limits.MAX_DEPLOYMENT, description="the deployment; services at the same sites share it", examples=[7]
    )


class Choice(Model):
    """The sites of a deployment in some regions."""

    deployment: int = Field(ge=1, le=limits.MAX_DEPLOYMENT, description="the deployment", examples=[7])
    sites: tuple[int, ...] = Field(
        min_length=1,
        max_length=limits.MAX_REDUNDANCY,
        description="the ids of the sites that get first flights, the best first",
        examples=["[2, 1]"],
    )
    regions: tuple[Region, ...] = Field(
        min_length=1, description="the regions; 0 for all regions that are not listed", examples=["[5]"]
    )


class MappingFile(Model):
    """The content of the file."""

    clients: tuple[Client, ...] = Field((), description="the regions of clients")
    services: tuple[Service, ...] = Field(description="the deployments of services")
    mapping: tuple[Choice, ...] = Field(description="the sites of deployments")


def load(file: Path) -> EndUserMapping:
    """Read a mapping. Raises ConfigError, which lists every problem."""
    try:
        text = file.read_text(encoding="utf-8")
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = Position(error.lineno, error.colno)
        raise ConfigError(file, [Problem((), f"invalid JSON: {error.msg}", "correct the JSON at this position", where)]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "write the mapping there")]) from None
    try:
        found = MappingFile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, _document(file, text), MappingFile)) from None
    mapping = EndUserMapping(
        {client.prefix: client.region for client in found.clients},
        {service.id: service.deployment for service in found.services},
        {(choice.deployment, region): choice.sites for choice in found.mapping for region in choice.regions},
    )
    listed = len(found.clients), len(found.services), sum(len(choice.regions) for choice in found.mapping)
    if (len(mapping.regions), len(mapping.deployments), len(mapping.choices)) != listed:
        what = "duplicate prefix, service, or deployment and region"
        raise ConfigError(file, [Problem((), what, "keep one of them")])
    used = set(mapping.deployments.values())
    if stray := [i for i, choice in enumerate(found.mapping) if choice.deployment not in used]:
        document, problems = _document(file, text), []
        for i in stray:
            path = ("mapping", i, "deployment")
            what = f"no service has deployment {found.mapping[i].deployment}"
            problems.append(Problem(path, what, "add one to `services`, or remove this", document.position(path)))
        raise ConfigError(file, problems)
    return mapping


def for_config(config: Config) -> EndUserMapping:
    """Return the part of the configuration's mapping file that its services need, or an empty mapping without a file.

    Raises ConfigError.
    """
    if config.mapping is None:
        return EndUserMapping()
    mapping = load(config.mapping).for_services(config.dedicated_services)
    try:
        MappingEntries(config, EndUserMapping()).check(mapping.whole)
    except MappingError as error:
        raise ConfigError(config.mapping, [Problem((), error.what, error.fix)]) from None
    return mapping


def _document(file: Path, text: str) -> Document:
    """Return the document with positions. The YAML parser, which reads JSON too, knows them, but it is slow."""
    try:
        return parse_yaml(text)
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None
