# SPDX-License-Identifier: Apache-2.0
"""The routes that a switch accepts from its routers."""

from __future__ import annotations

from enum import StrEnum

from frontage.bgp.update import Path
from frontage.config.bgp import LearnFamily, PrefixRule, RuleAction
from frontage.config.schema import Config
from frontage.fields import IPNetwork


class Rejection(StrEnum):
    """The reason why a route is rejected."""

    FAMILY = "family"
    """`bgp.learn` does not have the address family."""
    PREFIX_LIST = "prefix list"
    """No rule of the prefix list permits the prefix."""
    MARTIAN = "martian"
    """The prefix is in multicast, loopback or link-local space (RFC 1812, section 5.3.7)."""
    OWN_LINK = "own link"
    """The prefix is part of a link of the switch."""
    NEXT_HOP = "next hop"
    """The next hop is not a host on a link of the switch: a router of `bgp.neighbors`, or another known host."""
    LIMIT = "limit"
    """The switch has `max_routes` routes."""
    MALFORMED = "malformed"
    """The message cannot be read."""


class Acceptance:
    """The rules of one switch, except for the limit."""

    def __init__(self, config: Config):
        assert config.bgp is not None
        assert config.bgp.learn is not None
        self._learn = config.bgp.learn
        self._own_links = [gateway.network for port in config.ports for gateway in port.gateways]
        self._hosts = {host.address for host in config.on_link_hosts}

    def reject(self, prefix: IPNetwork, path: Path) -> Rejection | None:
        """Return why a route is rejected, or None if it is not."""
        family = self._learn.family(prefix.version)
        if family is None:
            return Rejection.FAMILY
        if (rule := matching_rule(family, prefix)) is None or rule.action is RuleAction.DENY:
            return Rejection.PREFIX_LIST
        if prefix.prefixlen and (prefix.is_multicast or prefix.is_loopback or prefix.is_link_local):
            return Rejection.MARTIAN
        if any(link.version == prefix.version and prefix.subnet_of(link) for link in self._own_links):  # type: ignore[arg-type]
            return Rejection.OWN_LINK
        if path.next_hop not in self._hosts or path.next_hop.version != prefix.version:
            return Rejection.NEXT_HOP
        return None


def matching_rule(family: LearnFamily, prefix: IPNetwork) -> PrefixRule | None:
    """Return the first rule that matches a prefix."""
    return next(
        (
            rule
            for rule in family.prefixes
            if prefix.prefixlen in rule.lengths and prefix.subnet_of(rule.prefix)  # type: ignore[arg-type]
        ),
        None,
    )
