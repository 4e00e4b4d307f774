// SPDX-License-Identifier: Apache-2.0
// Sites: their locations, and where the mapping sends clients.
import type { Site, Sites } from "../api/schema";

/** A site with a location. */
export type LocatedSite = Site & { location: NonNullable<Site["location"]> };

/** Returns the sites that have a location. */
export function located(sites: Site[]): LocatedSite[] {
  return sites.filter((site): site is LocatedSite => site.location !== null);
}

/** Returns each site's share of the regions of all services; nothing without a mapping. */
export function shares({ services }: Pick<Sites, "services">): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { site, regions } of services.flatMap((service) => service.regions_by_site)) {
    counts.set(site, (counts.get(site) ?? 0) + regions);
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return new Map([...counts].map(([site, count]) => [site, count / total]));
}
