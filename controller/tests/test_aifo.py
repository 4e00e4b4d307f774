# SPDX-License-Identifier: Apache-2.0
"""AIFO and SP-PIFO in the P4 program against plain models of their papers, packet by packet and register by register, with the
entries that the controller makes.
"""

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import softswitch
from conftest import ROOT
from frontage.p4.entries import Action, Key
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import scheduler
from frontage.state.desired import desired
from frontage.state.worker import return_ports, session
from frontage_ptf.aifo import Aifo
from frontage_ptf.sppifo import SpPifo
from scheduled_ports import CLOCK_FOR_DEPTH, configuration, frames, plain, quic, schema, switch, tcp, wide

MILLION = 1_000_000
AIFO = "FrontageIngress.scheduler.aifo"


@pytest.fixture(scope="module")
def program() -> softswitch.Program:
    return softswitch.compile_text(CLOCK_FOR_DEPTH, include_dirs=[ROOT / "p4src" / "v1model"])


@pytest.mark.parametrize("seed", [1])
def test_a_million_packets_agree_with_the_paper(program: softswitch.Program, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    shapes = {
        2: Shape(capacity=100, window=20, sample=1, k=0.1),
        3: Shape(capacity=20, window=16, sample=15, k=0.1, report_every=2),
        4: Shape(capacity=1000, window=7, sample=3, k=0.37, report_every=64),
        5: Shape(capacity=65, window=1, sample=2, k=0.0),
        6: Shape(capacity=(1 << 19) - 1, window=19, sample=1, k=0.9, report_every=1 << 15),
        7: Shape(capacity=33, window=20, sample=4, k=0.25, report_every=8, default_rank=300),
    }
    config = configuration({port: {"scheduler": {"kind": "aifo", **vars(shape)}} for port, shape in shapes.items()})
    pipeline = switch(program, config, tmp_path)
    models = {port: Aifo(s.capacity, s.window, s.sample, Fraction(str(s.k)), s.report_every) for port, s in shapes.items()}
    packets = {port: frames(port, scheduler.rank(shape.default_rank)) for port, shape in shapes.items()}
    refused = [0] * 32
    workers = 0
    for n in range(MILLION):
        port = rng.choice((2, 3, 4, 5, 6, 7))
        rank, frame = rng.choice(packets[port])
        model = models[port]
        # Queue depths are often near the limits, and sometimes beyond the capacity.
        depth = min(rng.randrange(model.capacity + 2), rng.randrange(model.capacity + 2)) if n % 5 else rng.randrange(4)
        came_out = pipeline.send(frame, 1, time_ns=depth * 1000)
        admitted = model.admits(rank)
        assert len(came_out) == admitted, f"seed {seed}, packet {n}: port {port}, rank {rank}, {vars(model)}"
        if admitted:
            assert came_out[0][0] == port
            workers += model.departs(depth)
        else:
            refused[rank >> 3] += 1
        if n % 1000 == 0 or n == MILLION - 1:
            for at, state in models.items():
                assert pipeline.register(f"{AIFO}.queue_depth.depths", at) == state.waiting
                missing = state.size - len(state.ranks)
                assert window(pipeline, at, state.size) == sorted(state.ranks) + missing * [255]
    assert [pipeline.counter(f"{AIFO}.refusals.refusals", band)[0] for band in range(32)] == refused
    assert pipeline.counter("FrontageIngress.drops", 29)[0] == sum(refused)
    assert pipeline.counter("FrontageIngress.workers", 2)[0] == workers
    share = sum(refused) / MILLION
    assert 0.1 < share < 0.9, f"{share} refused: the test says little"


class Shape:
    def __init__(self, capacity: int, window: int, sample: int, k: float, report_every: int = 1, default_rank: int = 0):
        self.capacity, self.window, self.sample, self.k = capacity, window, sample, k
        self.report_every, self.default_rank = report_every, default_rank


def window(pipeline: softswitch.Pipeline, port: int, size: int) -> list[int]:
    """Return the ranks in a window, sorted. Missing ranks count as the largest."""
    return sorted(255 - pipeline.register(f"{AIFO}.window.slot{i}.inverted_ranks", port) for i in range(size))


def test_priorities_agree_with_the_paper(program: softswitch.Program, tmp_path: Path) -> None:
    """The bounds show the priority of a packet: exactly the bound of its queue becomes its rank."""
    rng = random.Random(2)
    config = configuration({port: {"scheduler": {"kind": "sp-pifo", "default_rank": 100 * port}} for port in (2, 3)})
    pipeline = switch(program, config, tmp_path)
    models = {port: SpPifo() for port in (2, 3)}
    packets = {port: frames(port, scheduler.rank(100 * port)) for port in models}
    pushed_down = 0
    for n in range(200_000):
        port = rng.choice((2, 3))
        rank, frame = rng.choice(packets[port])
        # Ranks are small for a while now and then, so that bounds must decrease.
        if n // 1000 % 2 and rank > 40:
            continue
        before = list(models[port].bounds)
        models[port].priority(rank)
        pushed_down += rank < before[-1]
        assert [to for to, _ in pipeline.send(frame, 1)] == [port]
        bounds = [pipeline.register(f"FrontageIngress.scheduler.sp_pifo.bounds.bound{i}.bounds", port) for i in range(8)]
        assert bounds == models[port].bounds, f"packet {n}: rank {rank} on {before}"
    assert pipeline.counter("FrontageIngress.workers", 3)[0] == pushed_down > 1000


@pytest.mark.parametrize(("met", "marked"), [(0, 0), (9, 0), (10, 1), (11, 1), (1000, 1)])
@pytest.mark.parametrize("kind", [None, "fifo", "aifo", "sp-pifo"])
@pytest.mark.parametrize("ecn", range(4))
def test_packets_that_meet_a_long_queue_are_marked(
    program: softswitch.Program, tmp_path: Path, kind: str | None, ecn: int, met: int, marked: int
) -> None:
    """Marking starts at the threshold, and only for ECN-capable transports."""
    port: dict[str, Any] = {"ecn_threshold": 10}
    if kind is not None:
        port["scheduler"] = {"kind": kind, **({"capacity": 2000} if kind == "aifo" else {})}
    pipeline = switch(program, configuration({2: port}), tmp_path)
    frame = bytearray(plain(2))
    frame[15] |= ecn << 4
    ((_, out),) = pipeline.send(bytes(frame), 1, time_ns=met * 1000)
    assert out[15] >> 4 & 3 == (3 if ecn and marked else ecn)


@pytest.mark.parametrize("make", [quic, tcp], ids=["quic", "tcp"])
def test_ranks_of_packets_from_client_ports_are_ignored(program: softswitch.Program, tmp_path: Path, make: Any) -> None:
    """A packet from a client port has the default rank, whatever cookie it carries."""
    config = configuration({2: {"scheduler": {"kind": "sp-pifo", "default_rank": 800}}, 3: {}})
    pipeline = switch(program, config, tmp_path)
    bound = "FrontageIngress.scheduler.sp_pifo.bounds.bound0.bounds"
    frame = make(60, 2)
    outside = bytes.fromhex("020000000003") + frame[6:]
    assert len(pipeline.send(outside, 3)) == 1
    assert pipeline.register(bound, 2) == scheduler.rank(800)
    assert len(pipeline.send(frame, 1)) == 1
    assert pipeline.register(bound, 2) == (60 if make is quic else wide(60))


def test_limits_equal_the_formula_of_the_paper() -> None:
    """Every limit satisfies the condition of the paper, in rational numbers."""
    for capacity, size, k in [(100, 20, 0.1), (7, 3, 0.3), (20, 16, 0.0), (1000, 20, 0.999), (1, 1, 0.5)]:
        config = configuration({2: {"scheduler": {"kind": "aifo", "capacity": capacity, "window": size, "k": k}}})
        state = desired(config, allocate(config, Installed({})))
        exact = Fraction(str(k))
        for smaller in range(size + 1):
            passing = [
                c
                for c in range(capacity + 1)
                if c <= exact * capacity or Fraction(smaller, size) <= 1 / (1 - exact) * Fraction(capacity - c, capacity)
            ]
            assert state[Key("aifo.limit", (2, smaller))] == Action("set_limit", (max(passing),))
            assert passing == list(range(len(passing)))


def test_ports_with_ranks_need_a_worker_session() -> None:
    assert session(schema("v1model"), configuration({2: {}, 3: {"scheduler": {"kind": "fifo"}, "ecn_threshold": 5}})) == {}
    wanted = session(schema("v1model"), configuration({2: {"scheduler": {"kind": "sp-pifo"}}}))
    assert wanted == {Key("clone_session", (1,)): Action("replicas", (0, 510, 1))}


def test_tofino_always_needs_a_worker_session() -> None:
    assert session(schema("t2na"), configuration({2: {}})) == {Key("clone_session", (1,)): Action("replicas", (64, 6, 1))}


@pytest.mark.parametrize(
    ("architecture", "pipes", "ports"), [("v1model", 1, [510]), ("tna", 2, [68, 196]), ("t2na", 4, [6, 134, 262, 390])]
)
def test_workers_return_through_every_pipe(architecture: str, pipes: int, ports: list[int]) -> None:
    device = configuration({}).device.model_copy(update={"pipes": pipes})
    assert return_ports(schema(architecture), device) == ports


def test_workers_of_folded_programs_return_through_inner_pipes() -> None:
    gate, edge = "gate.GateIngress.gate_drops", "edge.EdgeIngress.edge_drops"
    scheduling = "scheduling.SchedulingIngress.scheduling_drops"
    device = configuration({}).device
    assert return_ports(schema("t2na", edge), device.model_copy(update={"pipes": 4})) == [134, 390]
    assert return_ports(schema("t2na", gate, edge, scheduling), device.model_copy(update={"pipes": 4})) == [262, 390]
