// SPDX-License-Identifier: Apache-2.0
// Services that move between sites.
import { geoDistance } from "d3-geo";
import type { PlacedService } from "../api/schema";
import type { LocatedSite } from "../state/sites";

/** The clients of services that go from one site to another. */
export interface Move {
  from: number;
  to: number;
  services: string[];
  /** Whether the move of one of the services has begun. */
  begun: boolean;
}

/**
 * Returns the moves of all services between sites with a location.
 *
 * A site that gets a service takes its clients from the nearest site that the service leaves, or else from the nearest that
 * it keeps. The clients of a site that a service leaves go to the nearest that gets it, or else to the nearest that it keeps.
 */
export function moves(services: PlacedService[], sites: LocatedSite[]): Move[] {
  const found = new Map<string, Move>();
  for (const service of services) {
    for (const [from, to, begun] of movesOf(service, sites)) {
      const key = `${from} ${to}`;
      const move = found.get(key) ?? { from, to, services: [], begun: false };
      found.set(key, { ...move, services: [...move.services, service.name], begun: move.begun || begun });
    }
  }
  return [...found.values()];
}

function movesOf(service: PlacedService, sites: LocatedSite[]): [number, number, boolean][] {
  const withStage = (...stages: string[]) =>
    service.sites.filter((one) => stages.includes(one.stage)).map((one) => one.site);
  const pick = (ids: number[]) => sites.filter((site) => ids.includes(site.id));
  const gained = pick([...withStage("starting"), ...service.adds]);
  const left = pick([...withStage("leaving"), ...service.removes]);
  const kept = pick(withStage("active")).filter((site) => !left.includes(site));
  const begun = service.begun || withStage("starting", "leaving").length > 0;
  const pairs: [LocatedSite, LocatedSite][] = [];
  for (const site of gained) {
    const from = nearest(site, left.length > 0 ? left : kept);
    if (from !== undefined) pairs.push([from, site]);
  }
  for (const site of left.filter((one) => !pairs.some(([from]) => from === one))) {
    const to = nearest(site, gained.length > 0 ? gained : kept);
    if (to !== undefined) pairs.push([site, to]);
  }
  return pairs.map(([from, to]) => [from.id, to.id, begun]);
}

function nearest(site: LocatedSite, others: LocatedSite[]): LocatedSite | undefined {
  const distance = (other: LocatedSite) => geoDistance(coordinates(site), coordinates(other));
  return others.toSorted((a, b) => distance(a) - distance(b))[0];
}

/** Returns longitude and latitude, in the order of GeoJSON. */
export function coordinates({ location }: LocatedSite): [number, number] {
  return [location.longitude, location.latitude];
}
