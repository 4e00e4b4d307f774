# SPDX-License-Identifier: Apache-2.0
"""Cross-checks of the configurations of several sites: statements of one site about another, and settings that all must share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path as FilePath

from frontage.config.checks.findings import Finding
from frontage.config.document import Path
from frontage.config.schema import Config
from frontage.config.sites import Artemis, OwnSite, Site
from frontage.config.vips import Vip

_SHARED = ("name", "vtep", "sids", "tunnel", "dispatchers", "location")
"""Fields of `sites[]` that must be equal at all sites."""


@dataclass(frozen=True, slots=True)
class SiteFile:
    """The configuration of one site, and its file."""

    file: FilePath
    config: Config


def compare(sites: Sequence[SiteFile]) -> Iterator[tuple[SiteFile, Finding]]:
    """Yield the contradictions between sites, each with the later file."""
    for site in sites:
        if site.config.site is None:
            yield site, Finding((), "the own site is unknown", "add `site` with `id` and `vtep`, or check this file alone")
    known = [site for site in sites if site.config.site is not None]
    for there, here in combinations(known, 2):
        for finding in _pair(here, there):
            yield here, finding


def _pair(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    if _own(here).id == _own(there).id:
        yield Finding(("site", "id"), f"{there.file} is site {_own(there).id}, too", "give each site its own id")
        return
    yield from _lists(here, there)
    yield from _descriptions(here, there)
    yield from _instances(here, there)
    yield from _services(here, there)
    yield from _cookie_prefixes(here, there)
    yield from _unicast(here, there)
    yield from _keys(here, there)


def _lists(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    """Check that both list the same sites."""
    ours = {site.id: (i, site) for i, site in enumerate(here.config.sites)}
    theirs = {site.id: site for site in there.config.sites}
    for number in theirs:
        if number not in ours and number != _own(here).id:
            yield Finding(
                ("sites",), f"site {number} is missing, which {there.file} lists", "list the same sites at all sites", True
            )
    for number, (i, site) in ours.items():
        if number not in theirs and number != _own(there).id:
            what = f"{there.file} does not list site {number}"
            yield Finding(("sites", i, "id"), what, "list the same sites at all sites")
        yield from _differences(("sites", i), site, theirs.get(number), there)


def _differences(path: Path, ours: Site, theirs: Site | None, there: SiteFile) -> Iterator[Finding]:
    for field in _SHARED if theirs is not None else ():
        if getattr(ours, field) != getattr(theirs, field):
            what = f"{_text(getattr(ours, field))}, but {there.file} says {_text(getattr(theirs, field))}"
            yield Finding((*path, field), what, "use the same values at all sites")


def _text(value: object) -> str:
    if value is None:
        return "none"
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _own(site: SiteFile) -> OwnSite:
    assert site.config.site is not None
    return site.config.site


def _descriptions(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    """Check each site's entry about the other against the other's own configuration."""
    for i, site in enumerate(here.config.sites):
        if site.id == _own(there).id:
            yield from _against(("sites", i), site, there)
    for i, site in enumerate(there.config.sites):
        if site.id == _own(here).id:
            for wrong in _against(("sites", i), site, here):
                yield Finding(("site",), f"{there.file} describes this site wrongly: {wrong.what}", wrong.fix, at_key=True)


def _against(path: Path, listed: Site, described: SiteFile) -> Iterator[Finding]:
    own = _own(described)
    if listed.vtep not in own.vtep:
        what = f"{listed.vtep} is not a tunnel endpoint of {described.file}, which has {_text(own.vtep)}"
        yield Finding((*path, "vtep"), what, "use one of them")
    for j, address in enumerate(listed.dispatchers):
        if address not in {dispatcher.address for dispatcher in described.config.dispatchers}:
            what = f"{address} is not a dispatcher of {described.file}"
            yield Finding((*path, "dispatchers", j), what, "use the address of one of its `dispatchers`")
    outside = [s for s in described.config.servers if not listed.sids[0] <= s.sid <= listed.sids[1]]
    if outside:
        what = f"{_text(listed.sids)} lacks SID {outside[0].sid} of server {outside[0].name} in {described.file}"
        yield Finding((*path, "sids"), what, "give the site a range with the SIDs of all its servers")


def _instances(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    ours, theirs = ({(i.prefix, frozenset(i.names)) for i in site.config.instances} for site in (here, there))
    if ours != theirs:
        what = f"differs from that of {there.file}"
        yield Finding(("instances",), what, "list the same instances, with the same names, at every site", at_key=True)


def _services(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    """Check services by name, by id and by address."""
    for i, vip in enumerate(here.config.vips):
        for other in there.config.vips:
            where = f"VIP {other.name} in {there.file}"
            if vip.artemis is None or other.artemis is None:
                yield from _unnamed(("vips", i), vip, other, where)
            elif vip.artemis.service == other.artemis.service:
                yield from _same_service(("vips", i), (vip, vip.artemis), (other, other.artemis), where)
            else:
                yield from _other_service(("vips", i), (vip, vip.artemis), (other, other.artemis), where)
        yield from _port(i, vip, there)


def _has_same_endpoint(one: Vip, other: Vip) -> bool:
    return (one.address, one.protocol, one.port) == (other.address, other.protocol, other.port)


def _unnamed(path: Path, vip: Vip, other: Vip, where: str) -> Iterator[Finding]:
    if _has_same_endpoint(vip, other) and (vip.artemis is None) != (other.artemis is None):
        what = f"{vip.address} is a service address, but {where} and this VIP do not both have a name"
        yield Finding((*path, "address"), what, "add `artemis` to both, or use another address")


def _same_service(path: Path, ours: tuple[Vip, Artemis], theirs: tuple[Vip, Artemis], where: str) -> Iterator[Finding]:
    (vip, service), (other, its) = ours, theirs
    if service.id != its.id:
        what = f"{service.id}, but {where} has {its.id}"
        yield Finding((*path, "artemis", "id"), what, "give the service the same id at all sites")
    if vip.protocol is other.protocol and service.dedicated_address != its.dedicated_address:
        what = f"{str(service.dedicated_address).lower()}, unlike {where}"
        yield Finding((*path, "artemis", "dedicated_address"), what, "make the two equal")
    if vip.address.version == other.address.version and vip.address != other.address:
        what = f"{vip.address}, but {where} has {other.address}"
        yield Finding((*path, "address"), what, "use the service address of the name at all sites")


def _other_service(path: Path, ours: tuple[Vip, Artemis], theirs: tuple[Vip, Artemis], where: str) -> Iterator[Finding]:
    (vip, service), (other, its) = ours, theirs
    if service.id == its.id:
        what = f"{its.id} is the id of {its.service}, {where}"
        yield Finding((*path, "artemis", "id"), what, "give each service one id, the same at all sites")
    if _has_same_endpoint(vip, other) and service.dedicated_address:
        what = f"{vip.address} is the service address of {its.service}, {where}"
        yield Finding((*path, "address"), what, "give each service its own address, or set `dedicated_address: false`")


def _port(i: int, vip: Vip, there: SiteFile) -> Iterator[Finding]:
    """Check that the service has this port of this protocol at the other site, too, if it runs there."""
    if vip.artemis is None:
        return
    others = [v for v in there.config.vips if v.artemis is not None and v.artemis.service == vip.artemis.service]
    if others and all((vip.protocol, vip.port) != (other.protocol, other.port) for other in others):
        ports = " and ".join(f"{other.protocol.upper()} port {other.port}" for other in others)
        what = f"{vip.protocol.upper()} port {vip.port}, but {there.file} has {vip.artemis.service} at {ports}"
        yield Finding(("vips", i, "port"), what, "use the same protocols and ports at all sites")


def _cookie_prefixes(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    for i, vip in enumerate(here.config.vips):
        for other in there.config.vips:
            if vip.cookie_prefix is not None and vip.cookie_prefix == other.cookie_prefix:
                what = f"{vip.cookie_prefix} is the cookie prefix of VIP {other.name} in {there.file}"
                yield Finding(("vips", i, "cookie_prefix"), what, "use a prefix that only this site announces")


def _unicast(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    ours = here.config.bgp.own_prefixes if here.config.bgp is not None else ()
    theirs = there.config.bgp.own_prefixes if there.config.bgp is not None else ()
    for i, prefix in enumerate(ours):
        for other in theirs:
            if prefix.overlaps(other):
                what = f"{prefix} overlaps {other}, which {there.file} announces"
                yield Finding(("bgp", "own_prefixes", i), what, "use a prefix that only this site announces")


def _keys(here: SiteFile, there: SiteFile) -> Iterator[Finding]:
    """Check that both have a common key, and no id with two secrets, because sites read the SIDs in each other's connection ids."""
    theirs = {key.id: key for key in there.config.cookie_keys}
    shared = [(i, key.id) for i, key in enumerate(here.config.keys) if key.id in theirs]
    ours = {key.id: key for key in here.config.cookie_keys}
    for i, number in shared:
        if ours[number].secret != theirs[number].secret:
            what = f"the secret of key {number} differs from that in {there.file}"
            yield Finding(("keys", i), what, "use the same keys at all sites")
    if not shared:
        yield Finding(("keys",), f"no common key with {there.file}", "use the same keys at all sites", at_key=True)
