# SPDX-License-Identifier: Apache-2.0
"""``syn_defence.p4``: the VIPs whose SYNs the switch answers, and the keys of SYN cookies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.syn_defence import SynMode
from frontage.config.vips import Vip
from frontage.cookie import CookieKey
from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

VIP = "syn_defence.vip"
ACTIVE_KEY = "syn_defence.active_key"
SECRETS = "syn_defence.secrets"
CLOCK = "syn_defence.clock"
KEYS = (ACTIVE_KEY, SECRETS, CLOCK)
TABLES = (*KEYS, VIP)
PACKETS = "syn_answer.packets"
"""Name of the counter."""

UNUSED: State = {Key(ACTIVE_KEY, ()): Action("set_active_key", (0,))}
"""The entries without a VIP that is defended."""


def entries(keys: Sequence[CookieKey], vips: Iterable[ResolvedVip], *, is_only_switch: bool) -> State:
    """Return the entries. ``keys`` are the keys in force, oldest first.

    The oldest key seals, because agents get a new key after the switch.
    """
    state = answers(((vip.id, vip.config) for vip in vips), is_only_switch=is_only_switch)
    if not state:
        return UNUSED
    for key in keys:
        first, second = key.syn_key
        state[Key(SECRETS, (key.epoch,))] = Action("set_secret", (first << 32 | second,))
        state[Key(CLOCK, (key.epoch,))] = Action("set_clock_offset", (key.id & 0xFFFF,))
    state[Key(ACTIVE_KEY, ())] = Action("set_active_key", (keys[0].epoch,))
    return state


def answers(vips: Iterable[tuple[int, Vip]], *, is_only_switch: bool) -> State:
    """Return the entries of defended VIPs, which come with their ids."""
    state: State = {}
    for number, vip in vips:
        defence = vip.syn_defence
        if defence is not None and defence.mode is not SynMode.OFF:
            answer = Action("answer", (defence.offered_mss(vip.address.version), int(is_only_switch)))
            state[Key(VIP, (number,))] = answer if defence.mode is SynMode.ALWAYS else Action("watch")
    return state
