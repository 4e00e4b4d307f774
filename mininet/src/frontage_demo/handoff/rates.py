"""The part of the page that is about downloads' rates: with losses (Fig. 13), and to clients of one path."""

from __future__ import annotations

import math

from frontage_testbed.reporting.markdown import table

from . import measure
from .measure import FAR, OWDS, Result
from .testbed import HANDOFF, ONE_PATH, PROXY

PROXIED, HANDED = 2 * OWDS["A"][0], sum(OWDS["A"])
"""Milliseconds between a packet and its acknowledgement in A."""
PAYLOAD = 1400
"""Bytes of a stream in a packet, about."""

FIGURE_13 = f"""## Figure 13: downloads with losses

Topology A, {measure.RATE} Mbit/s and {measure.QUEUE} packets' queue towards the client, CUBIC, three downloads of 12 MB each, or six of less where losses are the limit, the forms in turns. Published: about 12 Mbit/s with loss rates of "0.01, 0.03 and 0.1", less with more, and both forms alike; whether these are shares or per cent it does not say, so here are both.

Where the link is the limit, it is filled but for the first round trips, which take longer for the hand-off, and for *as far*: {PROXIED} and {HANDED} ms. Where losses are the limit, the round trip counts: the balancer that is a proxy hears of its packets after {PROXIED} ms, from it to the client and back, and has the rest of the way in TCP, where nothing is lost; the real server after {HANDED} ms, to the client, from there to the balancer, and back.
With a share p of packets lost at random, {math.sqrt(1.5):.2f} / sqrt(p) packets are under way on average (RFC 9438, section 4.3: at these rates CUBIC is as fast as Reno), in each round trip: so the hand-off is slower by {100 * (1 - PROXIED / HANDED):.0f} % in A and in B, and by 14 % in C (60 ms, and 70). *Expected* is that rate, for packets of
{PAYLOAD} bytes, and no more than the link's; at 10 % most losses are found by time-outs, which the formula leaves out. *As far* is a proxy with clients {HANDED} ms away, in the same run: next to it one sees what the hand-off itself costs. Feedback waits for 1 ms on average, so that it is relayed with others'.
"""
ONE_PATH_CLIENTS = f"""## Clients of one path

Not in the paper's figures: the same downloads to a client without multipath, for whom all senders share one space of packet numbers ([how](../handoff.md#clients-of-one-path)). {measure.FAST} Mbit/s and {measure.FAST_QUEUE} packets' queue towards the client, no losses, {measure.FAST_SIZE // 1_000_000} MB. Each packet of a real server's waits for its number, for a round trip to the
balancer. In A, what the balancer itself sends meanwhile comes 20 ms before what the real server sends by lower numbers: at this rate 170 packets, of which the client takes those more than 128 below for sent again.
"""


def less(ours: float, proxy: float) -> str:
    """Ours by the proxy's."""
    return f"{100 * (ours / proxy - 1):+.1f} %"


def expected(loss: float, round_trip: float) -> float:
    """Mbit/s of a sender whose packets are lost so often, and acknowledged after `round_trip` ms; no more than the link's."""
    rate = math.sqrt(1.5 / loss) * 8e-3 * PAYLOAD / round_trip if loss else math.inf
    return min(rate, measure.RATE)


def figure_13(result: Result) -> str:
    """With losses."""
    cells = []
    for loss, found in result.rates.items():
        line = [f"{100 * float(loss):g} %"]
        for form, round_trip in ((PROXY, PROXIED), (HANDOFF, HANDED)):
            line += [f"{found[form]:.2f} Mbit/s", f"{expected(float(loss), round_trip):.2f}"]
        line += [less(found[HANDOFF], found[PROXY]), f"{found[FAR]:.2f} Mbit/s", less(found[HANDOFF], found[FAR])]
        cells.append(line)
    head = ["packets lost", "proxy", "expected", "hand-off", "expected", "hand-off by proxy", "proxy, as far"]
    return table([*head, "hand-off by that"], cells)


def one_path(result: Result) -> str:
    """Without multipath."""
    forms = (PROXY, HANDOFF, ONE_PATH)
    cells = [[name, *(f"{found[form]:.1f} Mbit/s" for form in forms)] for name, found in result.fast.items()]
    return table(["one-way delays, ms, as in Figure 12", PROXY, "hand-off, several paths", ONE_PATH], cells)
