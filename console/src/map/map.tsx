// SPDX-License-Identifier: Apache-2.0
// A map of the sites. It is a file of its own, which browsers load when there is something to draw.
import { geoGraticule10, geoPath } from "d3-geo";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import atlas from "world-atlas/land-110m.json";
import type { PlacedService } from "../api/schema";
import { percent } from "../state/format";
import type { LocatedSite } from "../state/sites";
import { type Arc, layOut, type Point, type Shown } from "./layout";
import { coordinates, type Move, moves } from "./moves";
import { projectionFor } from "./projection";

const TOPOLOGY = atlas as unknown as Topology<{ land: GeometryCollection }>;
const LAND = feature(TOPOLOGY, TOPOLOGY.objects.land);
const GRATICULE = geoGraticule10();

/** The position of an anchor as a share of the width. */
const POSITION = { start: 0, middle: 0.5, end: 1 };

interface Props extends Omit<Shown, "moves"> {
  placement: PlacedService[];
}

export function SiteMap({ placement, ...shown }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const found = moves(placement, shown.sites);
  const names = new Map(shown.sites.map((site) => [site.id, site.name]));
  return (
    <figure class="map">
      <div ref={frame}>
        {width > 0 && <Picture shown={{ ...shown, moves: found }} size={[width, heightFor(width)]} />}
      </div>
      {found.length > 0 && (
        <figcaption>
          {found.map((move) => (
            <span key={`${move.from} ${move.to}`}>{describeMove(move, names)}</span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function heightFor(width: number): number {
  return Math.round(Math.max(230, Math.min(420, width * 0.45)));
}

/** Returns the width of an element in pixels; 0 before it is known. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = element.current;
    if (node === null) return;
    const observer = new ResizeObserver(() => setWidth(node.clientWidth));
    observer.observe(node);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

function Picture({ shown, size }: { shown: Shown; size: [number, number] }) {
  const [width, height] = size;
  const points = JSON.stringify(shown.sites.map(coordinates));
  const ground = useMemo(() => {
    const projection = projectionFor(JSON.parse(points), width, height);
    const path = geoPath(projection).digits(1);
    return { projection, land: path(LAND) ?? "", graticule: path(GRATICULE) ?? "" };
  }, [points, width, height]);
  const { circles, labels, arcs } = layOut(shown, ground.projection, size);
  const { sites, own } = shown;
  const names = new Map(sites.map((site) => [site.id, site.name]));
  return (
    <svg
      width={width}
      height={height}
      role="img"
      aria-label={`Map: ${sites.map((site) => describe(site, shown)).join("; ")}`}
    >
      <defs>
        <marker id="map-arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="4" markerHeight="4" orient="auto">
          <path class="arrow" d="M0,0 8,4 0,8z" />
        </marker>
      </defs>
      <path class="graticule" d={ground.graticule} />
      <path class="land" d={ground.land} />
      {arcs.map((arc) => (
        <path
          key={`${arc.move.from} ${arc.move.to}`}
          class={`move ${arc.move.begun ? "" : "planned"}`}
          d={pathOf(arc)}
          marker-end="url(#map-arrow)"
        >
          <title>{describeMove(arc.move, names)}</title>
        </path>
      ))}
      {circles.map(({ site, x, y, r }) => (
        <g key={site.id} class={`site ${site.id === own ? "own" : ""} ${site.out ? "out" : ""}`} data-site={site.name}>
          <title>{describe(site, shown)}</title>
          {site.id === own && <circle class="ring" cx={x} cy={y} r={r + 3} />}
          <circle cx={x} cy={y} r={r} />
        </g>
      ))}
      {[...labels].map(([id, { text, anchor, box }]) => (
        <text key={id} x={box.x + POSITION[anchor] * box.width} y={box.y + box.height - 4} text-anchor={anchor}>
          {text}
        </text>
      ))}
    </svg>
  );
}

function pathOf({ begin, control, end }: Arc): string {
  const text = ({ x, y }: Point) => `${x.toFixed(1)},${y.toFixed(1)}`;
  return `M${text(begin)} Q${text(control)} ${text(end)}`;
}

function describe(site: LocatedSite, { share, own }: Shown): string {
  const part = share.size > 0 ? `, ${percent(share.get(site.id) ?? 0)} of the regions` : "";
  return `${site.name}${site.id === own ? " (here)" : ""}${part}${site.out ? ", out" : ""}`;
}

function describeMove({ services, from, to, begun }: Move, names: Map<number, string>): string {
  return `${services.join(", ")}: ${names.get(from)} → ${names.get(to)}${begun ? "" : ", planned"}`;
}
