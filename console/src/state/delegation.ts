// SPDX-License-Identifier: Apache-2.0
// What real servers send for a load balancer: packets as the switches count them, and streams as the balancer's agent does.
import type { SampledServer, SampledServers, Sender } from "../api/schema";
import { Meters } from "./rates";

/** Seconds after which the streams of an agent are no longer current. */
export const STALE = 5;
/** Seconds over which rates are taken. */
const WINDOW = 5;

/** The real servers on one port, whose packets the switches count together. */
export interface PortGroup {
  port: string;
  senders: Sender[];
  bytesPerSecond: number | null;
  packetsPerSecond: number | null;
  packets: number;
}

/** Rates of everything that the samples of a VIP count. */
export class DelegationMeters {
  private readonly meters = new Meters();

  add(sample: SampledServers): void {
    for (const server of sample.servers) {
      this.meters.add(`down:${server.name}`, sample.time, server.down.bytes);
      for (const { port, senders } of byPort(server.real_servers)) {
        const [sender] = senders;
        this.meters.add(`bytes:${server.name}:${port}`, sample.time, sender?.bytes ?? 0);
        this.meters.add(`packets:${server.name}:${port}`, sample.time, sender?.packets ?? 0);
      }
      for (const sender of server.real_servers) {
        const at = server.agent?.time ?? null;
        if (at !== null && sender.streams !== null) {
          this.meters.add(`streams:${server.name}:${sender.name}`, at, sender.streams.completed);
        }
      }
    }
  }

  /** Returns the real servers of a load balancer by port. */
  groups(server: SampledServer): PortGroup[] {
    return byPort(server.real_servers).map(({ port, senders }) => ({
      port,
      senders,
      bytesPerSecond: this.meters.rate(`bytes:${server.name}:${port}`, WINDOW),
      packetsPerSecond: this.meters.rate(`packets:${server.name}:${port}`, WINDOW),
      packets: senders[0]?.packets ?? 0,
    }));
  }

  /** Returns the completed streams per second of a real server; null if they are unknown or too old. */
  streamsPerSecond(server: SampledServer, sender: Sender): number | null {
    return isCurrent(server) ? this.meters.rate(`streams:${server.name}:${sender.name}`, WINDOW) : null;
  }

  /** Returns the bytes per second that a load balancer sends itself: the switches count those of its real servers, too. */
  ownBytesPerSecond(server: SampledServer, delegated: number): number | null {
    const all = this.meters.rate(`down:${server.name}`, WINDOW);
    return all === null ? null : Math.max(0, all - delegated);
  }
}

/** Returns whether the streams of a load balancer are known and not too old. */
export function isCurrent(server: SampledServer): boolean {
  return server.agent?.age != null && server.agent.age <= STALE;
}

/** Returns the reasons of rejections that occurred, with their numbers. */
export function reasons(rejected: Record<string, number>): string {
  const seen = Object.entries(rejected).filter(([, count]) => count > 0);
  return seen.map(([reason, count]) => `${reason} ${count}`).join(", ");
}

function byPort(senders: Sender[]): { port: string; senders: Sender[] }[] {
  const groups = new Map<string, Sender[]>();
  for (const sender of senders) groups.set(sender.port, [...(groups.get(sender.port) ?? []), sender]);
  return [...groups].map(([port, members]) => ({ port, senders: members }));
}
