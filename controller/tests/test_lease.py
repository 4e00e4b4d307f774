# SPDX-License-Identifier: Apache-2.0
"""The lease of the leader, with a clock and a store under the control of the test."""

from __future__ import annotations

import contextlib
import random

import pytest

from frontage.store.errors import OvertakenError, StoreError
from frontage.store.lease import Lease

SECONDS = 10.0


class Store:
    """The values of keys. It can lose requests, or answers."""

    def __init__(self) -> None:
        self.value: tuple[bytes, int] | None = None
        self.loses_requests = self.loses_answers = False

    async def get(self, _key: str) -> tuple[bytes, int] | None:
        if self.loses_requests or self.loses_answers:
            raise StoreError("no answer")
        return self.value

    async def replace(self, _key: str, value: bytes, revision: int, _seconds: float) -> int:
        if self.loses_requests:
            raise StoreError("no answer")
        last = 0 if self.value is None else self.value[1]
        if revision != last:
            raise OvertakenError
        self.value = value, last + 1
        if self.loses_answers:
            raise StoreError("no answer")
        return last + 1


class Site:
    """Controllers with one store and one clock."""

    def __init__(self, *names: str) -> None:
        self.now = 0.0
        self.store = Store()
        self.leases = [Lease(name, SECONDS, lambda: None, clock=lambda: self.now) for name in names]

    async def step(self, lease: Lease) -> None:
        with contextlib.suppress(StoreError):
            await lease.step(self.store)
        lease.settle()

    @property
    def terms(self) -> list[int | None]:
        return [lease.term for lease in self.leases]


async def test_first_controller_leads_until_its_lease_ends() -> None:
    site = Site("a", "b")
    a, b = site.leases
    for lease in (a, a, b):
        await site.step(lease)
    assert site.terms == [1, None]
    assert (b.leader, b.leader_term) == ("a", 1)
    site.now = 8
    await site.step(b)
    assert site.terms == [None, None]  # the lease has ended at its holder, but not for the other yet
    site.now = 10.5
    await site.step(b)
    assert site.terms == [None, 2]
    await site.step(a)
    assert site.terms == [None, 2]
    assert a.leader == "b"


async def test_renewals_keep_the_lease() -> None:
    site = Site("a", "b")
    a, b = site.leases
    for _ in range(20):
        await site.step(a)
        await site.step(b)
        site.now += 5
        assert site.terms == [1, None]


async def test_renewal_without_an_answer_is_recognized_later() -> None:
    site = Site("a")
    (a,) = site.leases
    await site.step(a)
    site.store.loses_answers = True
    site.now = 2
    await site.step(a)
    site.store.loses_answers = False
    for site.now in (4, 6, 8, 10, 12):
        await site.step(a)
        assert a.term == 1


async def test_released_lease_is_free_at_once() -> None:
    site = Site("a", "b")
    a, b = site.leases
    await site.step(a)
    await site.step(b)
    await a.release(site.store, pause=5)
    await site.step(a)
    assert site.terms == [None, None]
    await site.step(b)
    assert site.terms == [None, 2]


async def test_term_exceeds_that_of_a_switch() -> None:
    site = Site("a")
    (a,) = site.leases
    await site.step(a)
    a.exceed(41)
    assert a.term == 1  # until the store has it
    await site.step(a)
    assert a.term == 42


@pytest.mark.parametrize("seed", range(200))
async def test_at_most_one_controller_leads_whatever_is_lost(seed: int) -> None:
    draw = random.Random(seed)
    site = Site("a", "b", "c")
    holders: dict[int, str] = {}
    for _ in range(400):
        site.now += draw.random() * draw.choice((1, 1, 8))
        site.store.loses_requests = draw.random() < 0.2
        site.store.loses_answers = draw.random() < 0.2
        await site.step(draw.choice(site.leases))
        leading = [lease for lease in site.leases if lease.term is not None]
        assert len(leading) <= 1
        for lease in leading:
            assert holders.setdefault(lease.term or 0, lease.name) == lease.name
    assert len(holders) > 2
