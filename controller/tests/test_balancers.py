# SPDX-License-Identifier: Apache-2.0
"""The rivals of CCLB4 (experiments/rivals), which run with CCLB4's entries, against plain models of their papers, packet by packet and
register by register.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import softswitch
from balanced_vips import SET, UNIT, Balanced, Server, Vip, clients, hash_of
from frontage.state.tree import Op
from frontage_ptf import least_request, prequal, two_choices
from frontage_ptf.cookie import decode
from rival_sources import rival_sources
from scheduled_ports import wide

PACKETS = 200_000 if "LONG" in os.environ else 100_000
WEIGHTS = {1: [1] * 11, 2: [1] * 4, 3: [2, 1] * 8, 4: [1]}
"""Weights of the servers by VIP: with and without free slots, and with a single slot."""


def rival(name: str, folder: Path) -> softswitch.Program:
    return softswitch.compile(rival_sources(name, folder) / "v1model" / "frontage.p4")


def score(server: Server, weights: list[int], n_af: int, n_ff: int) -> int:
    """Return the score of two of TCP's codes with the policy cclb4, in which each product is rounded half up."""
    share = min(weights) / server.weight
    return sum(int(UNIT * share * decode(code) / 2 + 0.5) for code in (n_af, n_ff))


def seed_or_clear(servers: two_choices.Servers, op: Op, server: Server) -> None:
    """Do in a model what an operation does in the switch."""
    if op is Op.SEED:
        servers.seed(server.slot, server.sid)
    else:
        servers.clear(server.slot)


def begin_service(switch: Balanced, operate: Callable[[Op, Vip, Server], None]) -> None:
    """Seed the active servers and clear the others, as the controller does."""
    for vip in switch.vips:
        for server in vip.servers:
            operate(Op.SEED if server.active else Op.CLEAR, vip, server)


def test_two_choices_agree_with_the_paper(tmp_path: Path) -> None:
    rng = random.Random(1)
    switch = Balanced(rival("two-choices", tmp_path), "cclb4", WEIGHTS, tmp_path)
    models = {vip.number: two_choices.Servers(vip.depth) for vip in switch.vips}

    def operate(op: Op, vip: Vip, server: Server) -> None:
        switch.operate(op, vip, server)
        seed_or_clear(models[vip.number], op, server)

    begin_service(switch, operate)
    begun: Counter[str] = Counter()
    origin = clients(rng)
    for n in range(PACKETS):
        vip = rng.choice(switch.vips)
        model = models[vip.number]
        client, port = next(origin)
        server = rng.choice(vip.servers)
        kind = rng.choices(("report", "begin", "operate"), (50, 45, 5))[0]
        if kind == "report":
            n_af, n_ff = rng.randrange(32), rng.randrange(32)
            switch.report(server, client, port, (rng.randrange(64), n_af, n_ff), n * 1000)
            if server.active:
                model.set(server.slot, server.sid, score(server, WEIGHTS[vip.number], n_af, n_ff))
            else:
                model.clear(server.slot)
        elif kind == "operate":
            operate(rng.choice((Op.SEED, Op.CLEAR)) if server.active else Op.CLEAR, vip, server)
        else:
            slot = two_choices.choose(model, hash_of(vip, client, port))
            sid = switch.begin(vip, client, port, n * 1000)
            if slot is None:
                begun["hashed"] += 1
                continue
            assert sid == model.sids[slot], f"packet {n}: {vip.number}, {vars(model)}"
            begun["chosen"] += 1
            begun["best"] += model.scores[slot] == min(model.scores.values())
            model.add(slot, sid, UNIT)
        assert switch.server_at(vip, server.slot) == model.at(server.slot), f"packet {n}: {server}"
    assert begun["hashed"] < begun["chosen"] / 20, begun
    assert 0.2 < begun["best"] / begun["chosen"] < 0.8, f"{begun}: the test says little"


def test_least_request_agrees_with_the_model(tmp_path: Path) -> None:
    rng = random.Random(2)
    switch = Balanced(rival("least-request", tmp_path), "cclb4-current", WEIGHTS, tmp_path)
    models = {vip.number: least_request.Queue() for vip in switch.vips}

    def operate(op: Op, vip: Vip, server: Server) -> None:
        switch.operate(op, vip, server)
        if op is Op.SEED:
            models[vip.number].seed(server.slot, server.sid, UNIT)
        else:
            models[vip.number].clear(server.slot)

    begin_service(switch, operate)
    begun: Counter[int | None] = Counter()
    origin = clients(rng)
    for n in range(PACKETS):
        vip = rng.choice(switch.vips)
        model = models[vip.number]
        client, port = next(origin)
        own_hash = hash_of(vip, client, port)
        server = rng.choice(vip.servers)
        kind = rng.choices(("report", "begin", "operate", "set"), (40, 57, 2, 1))[0]
        if kind == "set" and server.active:
            load = rng.choice((least_request.MAX_ADDITION, least_request.MAX_ADDITION - UNIT, 0xFFFE)) - rng.randrange(2)
            switch.operate(SET, vip, server, load)  # more than codes of TCP can report
            model.report(server.slot, server.sid, load, UNIT, 0)
        elif kind == "report":
            n_af = rng.randrange(32) if n // 20_000 % 2 else rng.randrange(6)
            switch.report(server, client, port, (rng.randrange(64), n_af, rng.randrange(32)), n * 1000)
            if server.active:
                share = min(WEIGHTS[vip.number]) / server.weight
                model.report(server.slot, server.sid, int(UNIT * share * decode(n_af) + 0.5), UNIT, own_hash)
            else:
                model.clear(server.slot)
        elif kind == "operate":
            operate(rng.choice((Op.SEED, Op.SEED, Op.CLEAR)) if server.active else Op.CLEAR, vip, server)
        elif kind == "begin":
            chosen = model.choose()
            sid = switch.begin(vip, client, port, n * 1000)
            begun[chosen and chosen.sid] += 1
            if chosen is not None:
                assert sid == chosen.sid, f"packet {n}: {vars(model)}"
                model.assign(chosen, own_hash)
        found = switch.pipeline.register("FrontageIngress.cclb4.tree.tournament.leaf.leaves", vip.base + server.slot)
        known = model.servers.get(server.slot)
        expected = 0
        if known is not None and known.deadline is not None:
            expected = 1 << 31 | known.deadline % 2**15 << 16 | known.tie << 12 | known.sid
        assert found == expected, f"packet {n}: {server}"
    assert begun[None] < PACKETS / 20, begun
    assert all(begun[server.sid] > PACKETS / 200 for vip in switch.vips for server in vip.servers if server.active), begun
    assert any(model.now > 10 * 2**15 for model in models.values()), "deadlines did not wrap around"


TICK = 1 << 30
"""Nanoseconds of a tick of the switch, 2^20 us."""


def test_prequal_agrees_with_the_model(tmp_path: Path) -> None:
    rng = random.Random(3)
    switch = Balanced(rival("prequal", tmp_path), "cclb4-current", WEIGHTS, tmp_path)
    models = {vip.number: prequal.Prequal(two_choices.Servers(vip.depth)) for vip in switch.vips}

    def operate(op: Op, vip: Vip, server: Server) -> None:
        switch.operate(op, vip, server)
        seed_or_clear(models[vip.number].servers, op, server)

    def results(vip: Vip) -> list[prequal.Result]:
        values = [switch.pipeline.register(f"FrontageIngress.cclb4.tree.results.result{n}", vip.id) for n in range(8)]
        fields = [(v >> 48 & 0xFFF, v >> 32 & 0xFFFF, v >> 16 & 0xFFFF, v & 0xFFFF, v >> 60) for v in values if v >> 60]
        return [prequal.Result(*found) for found in fields]

    begin_service(switch, operate)
    begun: Counter[str] = Counter()
    origin = clients(rng)
    time_ns = 0
    for n in range(PACKETS):
        time_ns += rng.choices((1000, TICK // 2, 2 * TICK), (998, 1, 1))[0]
        tick = time_ns // 1000 >> 20
        vip = rng.choice(switch.vips)
        model = models[vip.number]
        client, port = next(origin)
        server = rng.choice(vip.servers)
        kind = rng.choices(("report", "begin", "operate"), (50, 48, 2))[0]
        if kind == "report":
            rpt, n_af = rng.randrange(64), rng.randrange(12)
            switch.report(server, client, port, (rpt, n_af, rng.randrange(32)), time_ns)
            model.observe(server.slot, wide(rpt))
            if server.active:
                share = min(WEIGHTS[vip.number]) / server.weight
                model.servers.set(server.slot, server.sid, int(UNIT * share * decode(n_af) + 0.5))
            else:
                model.servers.clear(server.slot)
        elif kind == "operate":
            operate(rng.choice((Op.SEED, Op.SEED, Op.CLEAR)) if server.active else Op.CLEAR, vip, server)
        else:
            own_hash = hash_of(vip, client, port)
            before = list(model.results)
            sid = model.choose(own_hash, tick)
            begun["expired"] += len(before) - len(model.results)
            begun["hashed" if sid is None else "chosen" if model.results else "random"] += 1
            begun["hot"] += bool(model.results) and all(map(model.is_hot, model.results))
            found = switch.begin(vip, client, port, time_ns)
            if sid is None:
                continue
            assert found == sid, f"packet {n}: {model}"
            chosen = next(s for s in vip.servers if s.sid == sid)
            active = chosen.slot in model.servers.sids
            model.servers.add(chosen.slot, sid, UNIT)
            model.assign(sid, UNIT, own_hash, tick)
            begun["inactive"] += not active
            assert results(vip) == model.results, f"packet {n}: {model}"
        assert switch.server_at(vip, server.slot) == model.servers.at(server.slot), f"packet {n}: {server}"
        latency = switch.pipeline.register("FrontageIngress.cclb4.tree.latencies", vip.base + server.slot)
        assert latency == model.latencies.get(server.slot, 0), f"packet {n}: {server}"
    assert begun["hashed"] < begun["chosen"] / 20, begun
    assert min(begun[case] for case in ("random", "hot", "expired")) > 50, begun
