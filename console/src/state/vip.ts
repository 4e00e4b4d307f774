// SPDX-License-Identifier: Apache-2.0
// The live state of one VIP: its servers' loads, and how new connections spread over them.
import type { SampledServer, SampledServers } from "../api/schema";
import { Poller } from "./poll";
import { Meters, Series, variance } from "./rates";

/** Seconds over which shares of new connections are counted. */
export const WINDOW = 5;
/** With more servers, charts show the range instead of each server. */
export const CHARTED = 8;
const INTERVAL = 500;

export class VipState {
  readonly meters = new Meters();
  readonly loads = new Series([], 180);
  readonly shares = new Series([], 180);
  readonly spread = new Series(["variance of N_AF"], 180);
  readonly poller: Poller<SampledServers>;

  constructor(name: string) {
    this.poller = new Poller<SampledServers>(`samples/vips/${encodeURIComponent(name)}`, INTERVAL, (sample) =>
      this.take(sample),
    );
  }

  private take(sample: SampledServers): void {
    for (const server of sample.servers) {
      this.meters.add(`flows:${server.name}`, sample.time, server.new_flows);
      this.meters.add(`down:${server.name}`, sample.time, server.down.bytes);
      this.meters.add(`up:${server.name}`, sample.time, server.up.packets);
    }
    const loads = sample.servers.map((server) => server.n_af);
    const shares = this.newShares(sample.servers);
    if (sample.servers.length <= CHARTED) {
      const names = sample.servers.map((server) => server.name);
      this.loads.add(sample.time, names, loads);
      this.shares.add(
        sample.time,
        names,
        shares.map((share) => (share === null ? null : share * 100)),
      );
    } else {
      this.loads.add(sample.time, RANGE, range(loads));
      this.shares.add(
        sample.time,
        RANGE,
        range(shares).map((share) => (share === null ? null : share * 100)),
      );
    }
    const active = sample.servers.filter((server) => server.state === "active").map((server) => server.n_af ?? 0);
    this.spread.add(sample.time, this.spread.names, [sample.has_reports ? variance(active) : null]);
  }

  /** Returns each server's share of the connections of the last seconds. */
  newShares(servers: SampledServer[]): (number | null)[] {
    const counts = servers.map((server) => this.meters.increase(`flows:${server.name}`, WINDOW));
    const total = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
    return counts.map((count) => (count === null || total === 0 ? null : count / total));
  }
}

const RANGE = ["most", "median", "least"];

function range(values: (number | null)[]): (number | null)[] {
  const known = values.filter((value): value is number => value !== null).sort((a, b) => a - b);
  return [known.at(-1) ?? null, known[Math.floor(known.length / 2)] ?? null, known[0] ?? null];
}
