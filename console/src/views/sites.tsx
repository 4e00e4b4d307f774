// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useState } from "preact/hooks";
import type { PlacedService, Site, Sites } from "../api/schema";
import { percent, short, whole } from "../state/format";
import { Poller } from "../state/poll";
import { located, shares } from "../state/sites";
import { Age, Badge, Bar, Empty, Head, Panel, Scroll, type Tone } from "../ui/parts";

export function SitesView() {
  const poller = useMemo(() => new Poller<Sites>("sites", 3_000), []);
  useEffect(() => {
    poller.start();
    return () => poller.stop();
  }, [poller]);
  const state = poller.state.value;
  const found = state.value;
  return (
    <div class="view">
      <div class="title">
        <h1>Sites</h1>
        {found !== null && found.sites.length > 0 && <Age of={state} />}
      </div>
      {found === null ? (
        <Empty>{state.error ?? "loading …"}</Empty>
      ) : found.sites.length === 0 ? (
        <Empty>This controller serves one site: the configuration has no section `sites`.</Empty>
      ) : (
        <Found sites={found} />
      )}
    </div>
  );
}

function Found({ sites }: { sites: Sites }) {
  const names = new Map(sites.sites.map((site) => [site.id, site.name]));
  const name = (id: number) => names.get(id) ?? (id === sites.own ? "this site" : `site ${id}`);
  const share = shares(sites);
  return (
    <>
      <MapPanel sites={sites} share={share} />
      <div class="columns">
        <Panel title="Sites">
          <Scroll label="Sites">
            <table>
              <thead>
                <tr>
                  <th scope="col">site</th>
                  <Head>regions</Head>
                  <th scope="col">tunnel endpoint</th>
                  <th scope="col">SIDs</th>
                  <th scope="col">dispatchers</th>
                </tr>
              </thead>
              <tbody>
                {sites.sites.map((site) => (
                  <tr key={site.id}>
                    <th scope="row">
                      {site.name} <small>{site.id}</small> {site.id === sites.own && <Badge tone="info">here</Badge>}
                      {site.out && <Badge tone="bad">out</Badge>}
                      <small class="block">{locationOf(site)}</small>
                    </th>
                    <td class="n">{share.size === 0 ? "–" : percent(share.get(site.id) ?? 0)}</td>
                    <td class="mono">
                      {site.endpoint} <small>{site.tunnel}</small>
                    </td>
                    <td class="n">{site.sids.join(" – ")}</td>
                    <td class="mono">{site.dispatchers.join(", ") || "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
          {sites.sites.every((site) => site.location === null) && (
            <p class="note">
              With <code>location: {"{ latitude: 50.1, longitude: 8.7 }"}</code> in the entries of <code>sites</code> in
              the configuration, this page shows a map.
            </p>
          )}
        </Panel>
        <Panel title="Services" aside={sites.computed ? "mapping: computed" : "mapping: from a file"}>
          {sites.services.length === 0 && <Empty>No VIP is an Artemis service.</Empty>}
          {sites.services.map((service) => {
            const total = service.regions_by_site.reduce((sum, one) => sum + one.regions, 0) || 1;
            return (
              <div key={service.vip} class="service">
                <h3>
                  {service.name}{" "}
                  <small>
                    VIP {service.vip}, service {service.id}
                  </small>
                </h3>
                {service.regions_by_site.map((one) => (
                  <div key={one.site} class="bar-row">
                    <span>{name(one.site)}</span>
                    <Bar share={one.regions / total} />
                    <span class="n">
                      {one.regions === 1 ? "1 region" : `${whole(one.regions)} regions`}, {percent(one.regions / total)}
                    </span>
                  </div>
                ))}
                {service.regions_by_site.length === 0 && <small>no mapping yet</small>}
              </div>
            );
          })}
        </Panel>
      </div>
      {sites.placement.length > 0 && <Placement services={sites.placement} name={name} />}
      <div class="columns">
        <Panel title="Regions of clients" aside={`${whole(sites.prefix_count)} prefixes`}>
          <Scroll label="Regions of clients">
            <table>
              <tbody>
                {sites.prefixes.slice(0, 100).map((one) => (
                  <tr key={one.prefix}>
                    <th scope="row" class="mono">
                      {one.prefix}
                    </th>
                    <td class="n">region {one.region}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </Panel>
        <Panel title="Mapping" aside={`${whole(sites.choice_count)} choices`}>
          <Scroll label="Mapping">
            <table>
              <tbody>
                {sites.choices.slice(0, 100).map((one) => (
                  <tr key={`${one.deployment} ${one.region}`}>
                    <th scope="row">
                      deployment {one.deployment}, {one.region === 0 ? "other regions" : `region ${one.region}`}
                    </th>
                    <td>{one.sites.map(name).join(", then ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </Panel>
      </div>
    </>
  );
}

/** The map of the sites with a location. Its code and the coasts are loaded when they are needed. */
function MapPanel({ sites, share }: { sites: Sites; share: Map<number, number> }) {
  const [loaded, setLoaded] = useState<typeof import("../map/map") | null>(null);
  const [hasFailed, setHasFailed] = useState(false);
  const shown = located(sites.sites);
  const isNeeded = shown.length > 0;
  useEffect(() => {
    if (isNeeded) import("../map/map").then(setLoaded, () => setHasFailed(true));
  }, [isNeeded]);
  if (!isNeeded) return null;
  return (
    <Panel title="Map" aside={describeMap(sites.sites.length, shown.length, share.size > 0)}>
      {loaded === null ? (
        <Empty>{hasFailed ? "the map cannot be loaded: reload the page" : "loading …"}</Empty>
      ) : (
        <loaded.SiteMap sites={shown} placement={sites.placement} share={share} own={sites.own} />
      )}
    </Panel>
  );
}

function describeMap(total: number, shown: number, isMapped: boolean): string {
  const parts = isMapped ? ["circles: share of the regions of clients"] : [];
  return [...parts, ...(shown < total ? [`${whole(shown)} of ${whole(total)} sites have a location`] : [])].join("; ");
}

function locationOf({ location }: Site): string {
  if (location === null) return "";
  const { latitude, longitude } = location;
  return `${degrees(latitude, "N", "S")},\u00a0${degrees(longitude, "E", "W")}`;
}

function degrees(value: number, positive: string, negative: string): string {
  return `${Math.abs(value).toFixed(1)}°\u00a0${value < 0 ? negative : positive}`;
}

const STAGES: Record<string, Tone> = { starting: "info", active: "good", leaving: "warn", draining: "warn" };

function Placement({ services, name }: { services: PlacedService[]; name: (id: number) => string }) {
  return (
    <Panel title="Placement" aside="services that move with their demand">
      <Scroll label="Placement">
        <table>
          <thead>
            <tr>
              <th scope="col">service</th>
              <Head>handshakes/s</Head>
              <th scope="col">sites</th>
              <th scope="col">last move</th>
              <th scope="col">next</th>
            </tr>
          </thead>
          <tbody>
            {services.map((service) => (
              <tr key={service.name} data-service={service.name}>
                <th scope="row">{service.name}</th>
                <td class="n">{short(service.handshakes_per_second)}</td>
                <td>
                  {service.sites.map((one) => (
                    <span key={one.site}>
                      {name(one.site)} <Badge tone={STAGES[one.stage] ?? "idle"}>{one.stage}</Badge>{" "}
                    </span>
                  ))}
                </td>
                <td>{lastMove(service)}</td>
                <td>{service.error ?? next(service, name)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

function lastMove({ last_move: move }: PlacedService): string {
  if (move === null) return "–";
  return move.active === null
    ? `decided in epoch ${move.decided}, not active yet`
    : `epoch ${move.decided}, active in ${move.active}`;
}

function next({ adds, removes, begun }: PlacedService, name: (id: number) => string): string {
  const parts = [
    ["add", adds],
    ["remove", removes],
  ] as const;
  const words = parts
    .filter(([, sites]) => sites.length > 0)
    .map(([verb, sites]) => `${verb} ${sites.map(name).join(", ")}`);
  return words.length === 0 ? "nothing" : `${words.join(" and ")}${begun ? ": begun" : ""}`;
}
