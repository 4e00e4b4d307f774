# SPDX-License-Identifier: Apache-2.0
"""The rivals of AIFO (experiments/rivals), which run with AIFO's entries, against plain models of their papers, packet by packet and
register by register.
"""

import os
import random
from fractions import Fraction
from pathlib import Path

import pytest

import softswitch
from frontage_ptf.packs import Packs
from frontage_ptf.rifo import Rifo
from rival_sources import rival_sources
from scheduled_ports import CLOCK_FOR_DEPTH, configuration, frames, switch

PACKETS = 200_000 if "LONG" in os.environ else 100_000
AIFO = "FrontageIngress.scheduler.aifo"
K = {2: "0.1", 3: "0.1", 4: "0.37", 5: "0.0", 6: "0.25"}
"""Headroom by port."""
CAPACITY = {2: 80, 3: 24, 4: 400, 5: 65, 6: 9}
"""Queue capacity by port; those of 5 and 6 are not multiples of the number of priorities."""
WINDOW = {2: 20, 3: 16, 4: 7, 5: 1, 6: 19}
SAMPLE = {2: 1, 3: 15, 4: 3, 5: 150, 6: 2}


def rival(name: str, folder: Path, *macros: str) -> softswitch.Program:
    """Return the program with the files of a rival."""
    defines = "".join(f"#define {macro}\n" for macro in macros)
    return softswitch.compile_text(defines + CLOCK_FOR_DEPTH, include_dirs=[rival_sources(name, folder) / "v1model"])


def pipeline_of(program: softswitch.Program, folder: Path) -> softswitch.Pipeline:
    """Return a pipeline with the controller's entries for AIFO on all ports."""
    ports = {
        port: {
            "scheduler": {"kind": "aifo", "capacity": capacity, "window": WINDOW[port], "sample": SAMPLE[port], "k": float(K[port])}
        }
        for port, capacity in CAPACITY.items()
    }
    return switch(program, configuration(ports), folder)


def depth_behind(rng: random.Random, capacity: int) -> int:
    """Draw the queue depth that a departing packet reports: often near the capacity, so that queues fill up."""
    return rng.choice((capacity, rng.randrange(capacity + 1), rng.randrange(capacity + 1), min(3, capacity)))


def draw_packet(rng: random.Random, n: int, packets: list[tuple[int, bytes]]) -> tuple[int, bytes]:
    """Draw a packet. Ranks are small for a while now and then, so that windows and ranges move."""
    while True:
        rank, frame = rng.choice(packets)
        if n // 5000 % 2 == 0 or rank <= 60:
            return rank, frame


@pytest.mark.parametrize("seed", [1])
def test_packs_agrees_with_the_paper(tmp_path: Path, seed: int) -> None:
    """The queues show the priority of a packet: exactly one gets longer."""
    rng = random.Random(seed)
    pipeline = pipeline_of(rival("packs", tmp_path), tmp_path)
    models = {port: Packs(capacity, WINDOW[port], SAMPLE[port], Fraction(K[port])) for port, capacity in CAPACITY.items()}
    packets = {port: frames(port, 0) for port in models}
    refused = 0
    chosen = [0] * 8
    for n in range(PACKETS):
        port = rng.choice(tuple(models))
        rank, frame = draw_packet(rng, n, packets[port])
        model = models[port]
        depth = depth_behind(rng, model.capacity)
        before = list(model.waiting)
        came_out = pipeline.send(frame, 1, time_ns=depth * 1000)
        admitted = model.admits(rank)
        assert [to for to, _ in came_out] == admitted * [port], f"seed {seed}, packet {n}: port {port}, rank {rank}, {vars(model)}"
        if admitted:
            chosen[next(i for i, (a, b) in enumerate(zip(before, model.waiting, strict=True)) if a != b)] += 1
            model.departs(depth)
        refused += not admitted
        queues = [pipeline.register(f"{AIFO}.queues.queue{priority}.depths", port) for priority in reversed(range(8))]
        assert queues == model.waiting, f"seed {seed}, packet {n}: port {port}, rank {rank}, before {before}"
    assert pipeline.counter("FrontageIngress.drops", 29)[0] == refused
    assert 0.1 < refused / PACKETS < 0.9, f"{refused} refused: the test says little"
    assert min(chosen) > PACKETS / 200, f"packets by queue: {chosen}"


@pytest.mark.parametrize("macros", [(), ("RIFO_PUBLISHED_CODE",)], ids=["paper", "published code"])
def test_rifo_agrees_with_its_model(tmp_path: Path, macros: tuple[str, ...]) -> None:
    rng = random.Random(1)
    pipeline = pipeline_of(rival("rifo", tmp_path, *macros), tmp_path)
    models = {
        port: Rifo(capacity, SAMPLE[port], Fraction(K[port]), as_published_code=bool(macros)) for port, capacity in CAPACITY.items()
    }
    packets = {port: frames(port, 0) for port in models}
    refused = 0
    for n in range(PACKETS):
        port = rng.choice(tuple(models))
        rank, frame = draw_packet(rng, n, packets[port])
        model = models[port]
        depth = depth_behind(rng, model.capacity)
        came_out = pipeline.send(frame, 1, time_ns=depth * 1000)
        admitted = model.admits(rank)
        assert [to for to, _ in came_out] == admitted * [port], f"packet {n}: port {port}, rank {rank}, {vars(model)}"
        if admitted:
            model.departs(depth)
        refused += not admitted
        state = [
            pipeline.register(f"{AIFO}.{name}", port)
            for name in ("range.smallest_ranks", "range.largest_ranks", "admission.depths")
        ]
        assert state == [min(model.ranks), max(model.ranks), model.waiting], f"packet {n}: port {port}, rank {rank}"
    assert pipeline.counter("FrontageIngress.drops", 29)[0] == refused
    assert 0.1 < refused / PACKETS < 0.9, f"{refused} refused: the test says little"
