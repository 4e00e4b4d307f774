# SPDX-License-Identifier: Apache-2.0
"""The defence against SYN floods beside a running controller: detects attacks by the switches' counters (docs/syn-flood.md)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.config import Config
from frontage.config.syn_defence import SynDefence, SynMode
from frontage.config.vips import Vip

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between readings of the counters."""


@dataclass(slots=True)
class Attack:
    """The judgement of one VIP, from the number of its SYNs so far. Without clock and I/O."""

    answering: bool = False
    rate: float = 0.0
    """SYNs per second between the last two readings."""
    started: int = 0
    """Attacks so far."""
    _last: tuple[float, int] | None = None
    _quiet_since: float = 0.0

    def observe(self, now: float, syns: int, defence: SynDefence) -> bool:
        """Take the number of SYNs so far, and return whether `answering` changed."""
        last, self._last = self._last, (now, syns)
        if last is None or syns < last[1] or now <= last[0]:
            return False  # the first reading, or that of a switch that has restarted
        self.rate = (syns - last[1]) / (now - last[0])
        if self.rate > defence.threshold:
            self._quiet_since = now
            if not self.answering:
                self.answering = True
                self.started += 1
                return True
        elif self.answering and now - self._quiet_since >= defence.hold:
            self.answering = False
            return True
        return False


class SynDefences:
    """The defences of all VIPs. `effective` is a configuration in which the VIPs under attack are always defended."""

    def __init__(self) -> None:
        self._attacks: dict[str, Attack] = {}
        self._config: Config | None = None
        self._vips: tuple[tuple[Vip, ...], frozenset[str], tuple[Vip, ...]] | None = None
        """The VIPs of the last `effective`: before, under attack, and after."""

    def effective(self, config: Config) -> Config:
        """Return ``config`` with the defences of VIPs under attack in force. Without an attack, that is ``config`` itself."""
        self._config = config
        watched = _watched(config)
        self._attacks = {name: self._attacks.get(name, Attack()) for name in watched}
        attacked = frozenset(name for name, attack in self._attacks.items() if attack.answering)
        if not attacked:
            return config
        # The same VIPs are the same object, so that a change of servers alone remains one.
        if self._vips is None or self._vips[0] is not config.vips or self._vips[1] != attacked:
            self._vips = config.vips, attacked, _defended(config.vips, attacked)
        return config.model_copy(update={"vips": self._vips[2]})

    async def run(
        self,
        read: Callable[[AbstractSet[str]], Awaitable[Mapping[str, int]]],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """Judge the counters until cancelled.

        ``read`` returns the SYNs so far of these VIPs; none while it cannot read them. ``changed`` is called when `effective` changes.
        """
        while True:
            await asyncio.sleep(INTERVAL)
            watched = _watched(self._config) if self._config is not None else {}
            counts = await read(watched.keys()) if watched else {}
            if self._judge(time.monotonic(), counts, watched):
                await changed()

    def _judge(self, now: float, counts: Mapping[str, int], watched: Mapping[str, SynDefence]) -> bool:
        any_changed = False
        for name, syns in counts.items():
            attack = self._attacks.setdefault(name, Attack())
            if attack.observe(now, syns, watched[name]):
                any_changed = True
                if attack.answering:
                    log.warning("VIP %s: SYN flood of %.0f packets/s: the switch answers SYNs", name, attack.rate)
                else:
                    log.info("VIP %s: the SYN flood is over: SYNs reach the servers again", name)
        return any_changed

    def describe(self, status: dict[str, Any]) -> None:
        """Add the state of the defences to a status (`frontage.service.status`)."""
        for vip in status["vips"]:
            attack = self._attacks.get(vip["name"])
            if attack is not None and vip["syn_defence"] is not None:
                vip["syn_defence"] |= {"mode": str(SynMode.AUTO), "answering": attack.answering, "rate": round(attack.rate, 1)}

    def metrics(self) -> Iterable[Metric]:
        """Yield the metrics of the defences."""
        answering = GaugeMetricFamily(
            "frontage_syn_defence_answering", "1 while the switch answers the SYNs of a VIP with mode auto", labels=["vip"]
        )
        attacks = CounterMetricFamily("frontage_syn_floods", "Detected SYN floods", labels=["vip"])
        for name, attack in list(self._attacks.items()):
            answering.add_metric([name], float(attack.answering))
            attacks.add_metric([name], attack.started)
        yield from (answering, attacks)


def _watched(config: Config) -> dict[str, SynDefence]:
    """Return the defences with mode auto, by VIP name."""
    return {
        vip.name: vip.syn_defence for vip in config.vips if vip.syn_defence is not None and vip.syn_defence.mode is SynMode.AUTO
    }


def _defended(vips: tuple[Vip, ...], attacked: AbstractSet[str]) -> tuple[Vip, ...]:
    def one(vip: Vip) -> Vip:
        if vip.syn_defence is None or vip.name not in attacked:
            return vip
        defence = vip.syn_defence.model_copy(update={"mode": SynMode.ALWAYS})
        return vip.model_copy(update={"syn_defence": defence})

    return tuple(one(vip) for vip in vips)
