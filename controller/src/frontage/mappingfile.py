"""The end-user mapping as a file: JSON, of the same lists as dispatchers are given.

{"clients": [{"prefix": "2001:db8:c1::/48", "region": 5}],
 "mapping": [{"service": 3, "region": 5, "sites": [2, 1]}, {"service": 3, "region": 0, "sites": [1]}]}
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import Field, ValidationError

from frontage import limits
from frontage.config import Config, ConfigError
from frontage.explain import explain
from frontage.fields import NetworkField
from frontage.mapping import Change, EndUserMapping, MappingEntries, MappingError
from frontage.model import Model
from frontage.yamlfile import Document, DocumentError, Position, Problem
from frontage.yamlfile import parse as parse_yaml


class Client(Model):
    prefix: NetworkField = Field(description="an IP prefix without host bits", examples=["2001:db8:c1::/48"])
    region: int = Field(ge=1, le=limits.MAX_REGION, description="the region of its clients", examples=[5])


class Choice(Model):
    service: int = Field(ge=1, le=limits.MAX_SERVICE, description="a service's number", examples=[3])
    region: int = Field(ge=0, le=limits.MAX_REGION, description="a region, or 0 for all others", examples=[5])
    sites: tuple[int, ...] = Field(min_length=1, description="ids of sites, the best first", examples=["[2, 1]"])


class MappingFile(Model):
    clients: tuple[Client, ...] = Field((), description="regions of clients")
    mapping: tuple[Choice, ...] = Field(description="sites of services")


def load(file: Path) -> EndUserMapping:
    """Read a mapping. Raises ConfigError, which names every problem that was found."""
    try:
        text = file.read_text(encoding="utf-8")
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = Position(error.lineno, error.colno)
        raise ConfigError(file, [Problem((), f"is no JSON: {error.msg}", "correct it there", where)]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "write the mapping there")]) from None
    try:
        found = MappingFile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, _document(file, text), MappingFile)) from None
    mapping = EndUserMapping({c.prefix: c.region for c in found.clients}, {(c.service, c.region): c.sites for c in found.mapping})
    if len(mapping.regions) < len(found.clients) or len(mapping.choices) < len(found.mapping):
        raise ConfigError(file, [Problem((), "has a prefix, or a service and region, twice", "keep one of them")])
    return mapping


def of(config: Config) -> EndUserMapping:
    """The mapping of the configuration's file; empty if it names none. Raises ConfigError."""
    if config.mapping is None:
        return EndUserMapping()
    mapping = load(config.mapping)
    try:
        MappingEntries(config, EndUserMapping()).check(Change(mapping.regions, mapping.choices))
    except MappingError as error:
        what, _, fix = str(error).partition("; ")
        raise ConfigError(config.mapping, [Problem((), what, fix)]) from None
    return mapping


def _document(file: Path, text: str) -> Document:
    """With the places of what is wrong: JSON is YAML, whose parser knows them, and is slow."""
    try:
        return parse_yaml(text)
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None
