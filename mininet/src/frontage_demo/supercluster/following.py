# SPDX-License-Identifier: Apache-2.0
"""The scenario: demand moves between regions while servers, regions and links fail, and the records follow.

Each region has a record server (`frontage records serve`) and clients. The placer is the one that the leading controller runs.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path

from frontage.config.records import RecordPlacement
from frontage_records.errors import RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement.placer import Placer
from frontage_records.record import Consistency, Record
from frontage_testbed.natsservers import Servers

from .demand_clients import Request, load
from .failures import Cause, Failures, Fault, FaultKind
from .load import CONTROLLERS, REPLICAS
from .optimal import Demand, least_mean_rtt, mean_rtt
from .plan import RECOVERY_TIMEOUT, StormError
from .servers import Region

KINDS = (Consistency.EVENTUAL, Consistency.COUNTER, Consistency.TOTAL_WRITES, Consistency.TOTAL)
SITES_PER_RECORD = 2
"""F and M of this scenario: each record is at two of three sites, so its placement matters."""
SHARES = (0.80, 0.15, 0.05)
"""Shares of the requests from a record's main region and from the next two."""
EPOCHS_PER_PHASE = 3
MAX_EPOCHS = 2
"""Epochs after which the records must have followed their demand, in phases in which no site fails."""
FAULT_SHARE = 0.3
"""Duration of a fault in epochs. It begins when demand moves."""
PORT = 8480
_MOVE_DELAY = 0.5
"""Seconds after the begin of an epoch at which demand moves: the placer has decided on the last epoch then."""
_SAMPLE_MARGIN = 2.0
"""Seconds before the end of an epoch at which the placement is read, which takes several round trips."""


@dataclass(frozen=True)
class FollowPlan:
    """Parameters of a run."""

    rate: float = 240.0
    """Requests per second, of all regions together."""
    epoch: float = 20.0
    records: int = 2
    """Records of each consistency."""
    seed: int = 1

    @property
    def settings(self) -> RecordPlacement:
        """The settings of the placer."""
        return RecordPlacement.model_validate(
            {
                "epoch": self.epoch,
                "min_replicas": SITES_PER_RECORD,
                "max_replicas": SITES_PER_RECORD,
                "requests": 30,
                "share": 0.25,
            }
        )


@dataclass(frozen=True)
class Sample:
    """The placement at the end of an epoch."""

    epoch: int
    """Epochs since demand moved; 0: at that moment."""
    mean: float
    """Mean RTT in milliseconds to the nearest site of each request's record, by the true demand."""
    optimum: float
    read: float
    """Mean time in milliseconds of the clients' reads in that epoch."""


@dataclass(frozen=True)
class FollowPhase:
    """A part of the run, which begins when demand moves."""

    name: str
    begin: float
    end: float
    """The begin of the next phase; infinite for the last."""
    samples: Sequence[Sample]
    fault: Fault | None = None

    @property
    def has_failed_site(self) -> bool:
        """True if a whole site fails in this phase."""
        return self.fault is not None and self.fault.kind is not FaultKind.SERVER

    @property
    def followed(self) -> int | None:
        """The number of epochs after which the mean RTT stays within 5 % of the optimum; None if it does not."""
        good = None
        for sample in self.samples[1:]:
            if sample.mean <= 1.05 * sample.optimum:
                good = sample.epoch if good is None else good
            else:
                good = None
        return good


@dataclass
class FollowResult:
    """The result of a run."""

    phases: list[FollowPhase] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    kinds: Mapping[str, Consistency] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    capacity: Mapping[int, float] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def failed(self, phase: FollowPhase) -> list[tuple[Request, Cause]]:
        """Return the failed requests of a phase, with their causes."""
        failures = Failures(self.kinds, [one.fault for one in self.phases if one.fault is not None])
        bad = (one for one in self.requests if one.result != "ok" and phase.begin <= one.begin < phase.end)
        return [(one, failures.cause(one)) for one in bad]

    def late(self) -> list[str]:
        """Return a line for each phase without a failed site in which the records took too long to follow."""
        return [
            f"{phase.name}: the records follow after {phase.followed or 'more than ' + str(EPOCHS_PER_PHASE)} epochs"
            for phase in self.phases
            if not phase.has_failed_site and (phase.followed or MAX_EPOCHS + 1) > MAX_EPOCHS
        ]

    def defects(self) -> list[str]:
        """Return a line for each phase with failed requests that no fault explains."""
        found = []
        for phase in self.phases:
            bad = [request for request, cause in self.failed(phase) if cause is Cause.OTHER]
            if bad:
                first = f"{bad[0].kind} of {bad[0].guid}, region {bad[0].region}"
                found.append(f"{phase.name}: no fault explains {len(bad)} failed requests ({first})")
        return found

    def sent(self, phase: FollowPhase) -> int:
        """Return the number of requests in a phase."""
        return sum(phase.begin <= one.begin < phase.end for one in self.requests)


class Following:
    """One run. `cut` disconnects a site from the others (True) or reconnects it."""

    def __init__(
        self, servers: Servers, regions: Sequence[Region], folder: Path, plan: FollowPlan, cut: Callable[[int, bool], None]
    ) -> None:
        self._servers = servers
        self._regions = {region.site: region for region in regions}
        self._sites = sorted(self._regions)
        self._folder = folder
        self._plan = plan
        self._cut = cut
        self._kinds = {f"{kind}-{number}": kind for kind in KINDS for number in range(plan.records)}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._shift = 0
        self._last = dict.fromkeys(self._kinds, tuple(self._sites[:SITES_PER_RECORD]))
        """The sites of each record, as last read."""
        self.result = FollowResult(kinds=self._kinds)

    async def run(self) -> FollowResult:
        """Run the scenario. The servers run already. Raises StormError and RecordError."""
        first = self._sites[0]
        store = await JetStream.open(
            self._servers.near(first), first, self._sites, replicas=REPLICAS, controllers=CONTROLLERS, serves=False
        )
        placer = Placer(store, self._sites, self._plan.settings, SITES_PER_RECORD, clock=time.monotonic)
        placing: asyncio.Task[None] | None = None
        try:
            await self._create(store)
            for site in self._sites:
                await self._serve(site)
            self._demand()
            outs = [await self._send(site) for site in self._sites]
            placing = asyncio.create_task(placer.run())
            await self._phases(store)
            self._end()
            self.result.requests += load(outs)
            self.result.phases = [self._with_reads(phase) for phase in self.result.phases]
            self.result.moves = placer.progress.counts
            self.result.capacity = {} if placer.progress.epoch is None else placer.progress.epoch.capacity
            self.result.violations = [*await self._violations(), *self.result.late(), *self.result.defects()]
        finally:
            if placing is not None:
                placing.cancel()
                await asyncio.gather(placing, return_exceptions=True)
            for process in self._processes:
                if process.poll() is None:
                    process.kill()
            await store.close()
        return self.result

    async def _create(self, store: JetStream) -> None:
        for guid, kind in self._kinds.items():
            if kind.merge is None:
                await store.put(guid, {"by": "0"}, consistency=kind, stamp=1)
            else:
                await store.update(guid, {"n": 0}, consistency=kind)
            await store.place(guid, self._sites[:SITES_PER_RECORD])

    def _demand(self) -> Demand:
        """Write the clients' rates, and return the demand. Each record has a main region, which the number of shifts gives."""
        each = self._plan.rate / len(self._kinds)
        demand = {
            guid: {self._sites[(number + self._shift + k) % len(self._sites)]: each * share for k, share in enumerate(SHARES)}
            for number, guid in enumerate(self._kinds)
        }
        for site in self._sites:
            file = self._folder / f"rates-{site}.json"
            new = file.with_suffix(".new")
            new.write_text(json.dumps({guid: regions[site] for guid, regions in demand.items()}))
            new.rename(file)
        return demand

    async def _serve(self, site: int) -> None:
        """Start the record server of a region, and wait until it serves."""
        config = self._folder / f"records-{site}.yaml"
        config.write_text(self._configuration(site))
        command: list[str | Path] = [Path(sys.executable).with_name("frontage"), "records", "serve", "-c", config]
        await self._start(site, f"records-{site}", command, "records at")

    def _configuration(self, site: int) -> str:
        """Return the configuration of a region. Its record server uses only the sites and the section `records`."""
        regions = ", ".join(f'"{_network(region)}": {region.site}' for region in self._regions.values())
        sites = "".join(
            f'  - {{ id: {one}, name: site{one}, vtep: "{_vtep(one)}", sids: [{100 * one}, {100 * one + 99}] }}\n'
            for one in self._sites
        )
        plan = self._plan.settings
        return f"""\
device:
  {{ address: "127.0.0.1:9559", device_id: 1, cpu_port: 510, pipeline: {{ p4info: p4info.txtpb, json: frontage.json }} }}
ports:
  - {{ id: 1, name: wan, role: site, mac: "02:00:00:00:01:01", gateways: ["2001:db8:1::1/64"] }}
routes:
  - {{ prefix: "2001:db8:1f0::/44", port: wan, next_hop: "2001:db8:1::fe" }}
keys:
  - {{ id: 1, secret: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f }}
site: {{ id: {site}, vtep: "{_vtep(site)}" }}
sites:
{sites}records:
  listen: "[{self._regions[site].address}]:{PORT}"
  store: {",".join(self._servers.near(site))}
  replicas: {REPLICAS}
  controllers: {CONTROLLERS}
  placement:
    epoch: {plan.epoch}
    min_replicas: {plan.min_replicas}
    max_replicas: {plan.max_replicas}
    requests: {plan.requests}
    share: {plan.share}
    regions: {{ {regions} }}
"""

    async def _send(self, site: int) -> Path:
        names, out = self._folder / "demand-names", self._folder / f"requests-{site}.jsonl"
        names.write_text("".join(f"{guid}={kind}\n" for guid, kind in self._kinds.items()))
        command: list[str | Path] = [sys.executable, "-m", "frontage_demo.supercluster.demand_clients", "--region", str(site)]
        command += ["--servers", *(f"{one}=http://[{region.address}]:{PORT}" for one, region in self._regions.items())]
        command += ["--names", names, "--rates", self._folder / f"rates-{site}.json", "--seed", str(self._plan.seed), "--out", out]
        await self._start(site, f"demand-clients-{site}", command, "ready")
        return out

    async def _start(self, site: int, name: str, command: Sequence[str | Path], word: str) -> None:
        log = self._folder / f"{name}.log"
        with log.open("wb") as file:
            process = self._regions[site].spawn(command, file)
        self._processes.append(process)
        async with asyncio.timeout(RECOVERY_TIMEOUT):
            while word not in log.read_text():
                if process.poll() is not None:
                    raise StormError(f"{name} failed: {log.read_text()[-2000:]}")
                await asyncio.sleep(0.05)

    def _end(self) -> None:
        """End the clients, then the record servers."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(RECOVERY_TIMEOUT)

    async def _phases(self, store: JetStream) -> None:
        second, third = self._sites[1:]
        await self._phase(store, "first demand")
        await self._phase(store, "demand moves")
        await self._phase(store, "demand moves, a server is killed", (FaultKind.SERVER, second))
        await self._phase(store, "demand moves, a region is killed", (FaultKind.REGION, third))
        await self._phase(store, "demand moves, links of a region are cut", (FaultKind.LINKS, second))

    async def _phase(self, store: JetStream, name: str, fails: tuple[FaultKind, int] | None = None) -> None:
        """Move the demand as an epoch begins, and sample the placement just before the ends of this epoch and the following ones."""
        await self._until_epoch(_MOVE_DELAY / self._plan.epoch)
        begin = time.monotonic()
        self._shift += 1
        demand = self._demand()
        samples = [await self._sample(store, demand, 0)]
        failing = None if fails is None else asyncio.ensure_future(self._fail(*fails))
        for number in range(1, EPOCHS_PER_PHASE + 1):
            await self._until_epoch(0.5)
            await self._until_epoch(1 - _SAMPLE_MARGIN / self._plan.epoch)
            samples.append(await self._sample(store, demand, number))
        fault = None if failing is None else await failing
        if self.result.phases:
            self.result.phases[-1] = replace(self.result.phases[-1], end=begin)
        self.result.phases.append(FollowPhase(name, begin, math.inf, samples, fault))

    async def _until_epoch(self, share: float) -> None:
        """Wait until this share of an epoch is over."""
        epoch = self._plan.epoch
        await asyncio.sleep((share * epoch - time.monotonic()) % epoch)

    async def _fail(self, kind: FaultKind, site: int) -> Fault:
        """Inject a fault, and return it after its end."""
        begin, placed = time.monotonic(), dict(self._last)
        if kind is FaultKind.LINKS:
            self._cut(site, True)
        else:
            names = [one.name for one in self._servers.of(site)][: 1 if kind is FaultKind.SERVER else None]
            for name in names:
                self._servers.kill(self._servers.named(name))
        await asyncio.sleep(FAULT_SHARE * self._plan.epoch)
        if kind is FaultKind.LINKS:
            self._cut(site, False)
        else:
            for name in names:
                self._servers.start(self._servers.named(name))
        return Fault(kind, site, begin, time.monotonic(), placed)

    async def _sample(self, store: JetStream, demand: Demand, epoch: int) -> Sample:
        placed = dict(zip(demand, await asyncio.gather(*(self._placed(store, guid) for guid in demand)), strict=True))
        counts = {guid: len(sites) for guid, sites in placed.items()}
        return Sample(epoch, mean_rtt(demand, placed), least_mean_rtt(demand, counts, self._sites), 0.0)

    async def _placed(self, store: JetStream, guid: str) -> tuple[int, ...]:
        """Return a record's sites; if they cannot be read now, those that were known last."""
        try:
            async with asyncio.timeout(_SAMPLE_MARGIN):
                location = await store.locator.find(guid, nearby=True)
                assert location is not None
                self._last[guid] = (await store.groups.current(location.group)).sites
        except (RecordError, TimeoutError):
            pass
        return self._last[guid]

    def _with_reads(self, phase: FollowPhase) -> FollowPhase:
        """Return the phase with the clients' mean read time in each epoch."""
        times: dict[int, list[float]] = defaultdict(list)
        for one in self.result.requests:
            if one.kind == "read" and one.result == "ok" and phase.begin <= one.begin < phase.end:
                times[1 + int((one.begin - phase.begin) // self._plan.epoch)].append(one.seconds * 1000)
        samples = [
            Sample(one.epoch, one.mean, one.optimum, sum(found) / len(found) if (found := times[one.epoch]) else 0.0)
            for one in phase.samples
        ]
        return replace(phase, samples=samples)

    async def _violations(self) -> list[str]:
        """Check that no acknowledged write is lost, once all sites agree. New servers forward what the last ones have left."""
        stores = [
            await JetStream.open(self._servers.near(site), site, self._sites, replicas=REPLICAS, controllers=CONTROLLERS)
            for site in self._sites
        ]
        try:
            final = await agreed(stores, list(self._kinds))
        finally:
            for store in stores:
                await store.close()
        writes = [one for one in self.result.requests if one.kind == "write"]
        found = []
        for guid, kind in self._kinds.items():
            done = [one for one in writes if one.guid == guid and one.result == "ok"]
            unknown = sum(one.guid == guid and one.result == "outcome_unknown" for one in writes)
            found += [f"{guid}: {what}" for what in _lost(final[guid], kind, done, unknown)]
        return found


def _lost(record: Record, kind: Consistency, done: Sequence[Request], unknown: int) -> list[str]:
    if kind is Consistency.EVENTUAL:
        newest = max((one.stamp for one in done), default=0)
        return [] if record.stamp >= newest else [f"ends with stamp {record.stamp}, {newest} was acknowledged"]
    number = record.version - 1 if kind.merge is None else (record.value or {}).get("n", 0)
    if len(done) <= number <= len(done) + unknown:
        return []
    return [f"{number} writes took effect, {len(done)} were acknowledged and {unknown} have an unknown outcome"]


async def agreed(stores: Sequence[JetStream], guids: Sequence[str]) -> dict[str, Record]:
    """Return the records once all sites read the same and have nothing left to forward. Raises StormError."""
    deadline = time.monotonic() + RECOVERY_TIMEOUT
    differ = ""
    while time.monotonic() < deadline:
        try:
            reads = [{guid: await store.get(guid) for guid in guids} for store in stores]
        except RecordError as error:
            differ = str(error)
        else:
            differ = ", ".join(guid for guid in guids if any(one[guid] != reads[0][guid] for one in reads))
            if not differ and not any(store.unforwarded for store in stores):
                return reads[0]
        await asyncio.sleep(0.2)
    raise StormError(f"the sites do not agree after {RECOVERY_TIMEOUT:.0f} s: {differ or 'writes are not forwarded'}")


def _vtep(site: int) -> str:
    return f"2001:db8:1f{site}::1"


def _network(region: Region) -> str:
    return str(ip_network(f"{region.address}/64", strict=False))
