// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Agent, SampledServer, SampledServers, Sender } from "../src/api/schema";
import { DelegationMeters, isCurrent, reasons } from "../src/state/delegation";

const NONE = { completed: 0, aborted: 0, resumed: 0, in_progress: 0, body_bytes: 0, rejected: {} };

function sender(name: string, port: string, packets: number, completed: number | null): Sender {
  return { name, port, packets, bytes: 100 * packets, streams: completed === null ? null : { ...NONE, completed } };
}

function server(agent: Agent | null, bytes: number, senders: Sender[]): SampledServer {
  const none = { packets: 0, bytes: 0 };
  return {
    ...{ name: "film1", address: "::1", port: 1, sid: 1, weight: 1, share: 100, zone: null, state: "active" },
    ...{ health: null, up: none, new_flows: 0, n_af: null, n_ff: null, rpt_us: null, score: null },
    ...{ agent, down: { packets: 0, bytes }, real_servers: senders },
  };
}

function sample(time: number, one: SampledServer): SampledServers {
  return { time, seconds: 0, has_reports: false, servers: [one] };
}

function agent(time: number | null, age: number | null): Agent {
  return { time, age, error: null, unmatched: [] };
}

describe("DelegationMeters", () => {
  const at = (time: number, packets: number, completed: number, read: number, old = 0.2) =>
    sample(
      time,
      server(agent(read, old), 150 * packets, [
        sender("real1", "rack3", packets, completed),
        sender("real2", "rack3", packets, null),
        sender("real3", "rack4", 0, 0),
      ]),
    );

  it("counts the packets of a port once", () => {
    const meters = new DelegationMeters();
    meters.add(at(10, 0, 0, 9));
    const last = at(12, 20, 6, 11);
    meters.add(last);
    const [one] = last.servers;
    if (one === undefined) throw new Error("no server");
    const groups = meters.groups(one);
    expect(groups.map((group) => [group.port, group.senders.length, group.packetsPerSecond])).toEqual([
      ["rack3", 2, 10],
      ["rack4", 1, 0],
    ]);
    const total = groups.reduce((sum, group) => sum + (group.bytesPerSecond ?? 0), 0);
    expect(meters.ownBytesPerSecond(one, total)).toBe(500);
  });

  it("takes rates of streams over the times of the readings", () => {
    const meters = new DelegationMeters();
    meters.add(at(10, 0, 0, 9));
    meters.add(at(11, 0, 0, 9));
    const last = at(12, 0, 6, 11);
    meters.add(last);
    const [one] = last.servers;
    const [real1, real2] = one?.real_servers ?? [];
    if (one === undefined || real1 === undefined || real2 === undefined) throw new Error("no server");
    expect(meters.streamsPerSecond(one, real1)).toBe(3);
    expect(meters.streamsPerSecond(one, real2)).toBeNull();
    expect(meters.streamsPerSecond({ ...one, agent: agent(11, 6) }, real1)).toBeNull();
  });
});

describe("streams", () => {
  it("are current while their agent answers", () => {
    expect(isCurrent(server(agent(1, 0.5), 0, []))).toBe(true);
    expect(isCurrent(server(agent(1, 30), 0, []))).toBe(false);
    expect(isCurrent(server(agent(null, null), 0, []))).toBe(false);
    expect(isCurrent(server(null, 0, []))).toBe(false);
  });

  it("name the reasons of rejections that occurred", () => {
    expect(reasons({ small: 0, busy: 7, path: 1 })).toBe("busy 7, path 1");
    expect(reasons({ small: 0 })).toBe("");
  });
});
