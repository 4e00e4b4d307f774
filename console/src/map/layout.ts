// SPDX-License-Identifier: Apache-2.0
// The circles, labels and arcs of a map, in pixels.
import type { GeoProjection } from "d3-geo";
import type { LocatedSite } from "../state/sites";
import { coordinates, type Move } from "./moves";

/** What a map shows. */
export interface Shown {
  sites: LocatedSite[];
  moves: Move[];
  /** The shares of regions by id of the site; empty without a mapping. */
  share: Map<number, number>;
  /** The id of the site that has this controller. */
  own: number | null;
}

export interface Circle {
  site: LocatedSite;
  x: number;
  y: number;
  r: number;
}

/** The name of a site, and the box that it needs. */
export interface Label {
  text: string;
  /** The end of the box from which the text is written. */
  anchor: "start" | "middle" | "end";
  box: Box;
}

/** A quadratic Bézier curve from the edge of one circle to the edge of the other. */
export interface Arc {
  move: Move;
  begin: Point;
  control: Point;
  end: Point;
}

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  /** The largest first, so that it does not hide others. */
  circles: Circle[];
  /** By id of the site; sites without room for a label have none. */
  labels: Map<number, Label>;
  arcs: Arc[];
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const CHARACTER_WIDTH = 7.3;
const LABEL_HEIGHT = 15;
/** Pixels between a circle and its label or arc, of which the ring of the own site needs 3. */
const GAP = 6;
const MIN_RADIUS = 5;
/** The radius of a site with all regions. */
const MAX_RADIUS = 22;
/** A label is left out if a larger share of it would be hidden. */
const MAX_HIDDEN = 0.15;
/** Pixels between the points of an arc that labels avoid. */
const STEP = 6;
/** A label has its preferred position unless another one hides so much less of it. */
const BETTER = 0.01;
/** Pixels between the end of an arc and the circle, for the tip of the arrow. */
const TIP = 9;

/** Returns the parts of a picture of this width and height. */
export function layOut({ sites, moves, share, own }: Shown, projection: GeoProjection, size: [number, number]): Layout {
  const [width, height] = size;
  const most = Math.min(MAX_RADIUS, width / 22);
  const circles = sites
    .map((site): Circle => {
      const [x, y] = projection(coordinates(site)) ?? [0, 0];
      return { site, x, y, r: Math.max(MIN_RADIUS, Math.sqrt(share.get(site.id) ?? 0) * most) };
    })
    .sort((a, b) => b.r - a.r);
  const arcs = moves.flatMap((move) => arc(move, circles) ?? []);
  return { circles, labels: place(circles, arcs, own, { x: 3, y: 3, width: width - 6, height: height - 6 }), arcs };
}

function arc(move: Move, circles: Circle[]): Arc | null {
  const from = circles.find((circle) => circle.site.id === move.from);
  const to = circles.find((circle) => circle.site.id === move.to);
  if (from === undefined || to === undefined) return null;
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const distance = Math.hypot(dx, dy);
  if (distance < from.r + to.r + 2 * TIP) return null;
  // The arc bends to its left, so that the arcs of both directions are apart.
  const bend = Math.min(90, distance / 4);
  const control = { x: from.x + dx / 2 + (dy / distance) * bend, y: from.y + dy / 2 - (dx / distance) * bend };
  return { move, begin: towards(from, control, from.r + GAP), control, end: towards(to, control, to.r + TIP) };
}

function towards(from: Point, to: Point, by: number): Point {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  return { x: from.x + ((to.x - from.x) / distance) * by, y: from.y + ((to.y - from.y) / distance) * by };
}

/** Returns small boxes along an arc. */
function alongArc({ begin, control, end }: Arc): Box[] {
  const steps = Math.ceil(Math.hypot(end.x - begin.x, end.y - begin.y) / STEP);
  return Array.from({ length: steps + 1 }, (_, i) => {
    const t = i / steps;
    const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
    const [x, y] = [a * begin.x + b * control.x + c * end.x, a * begin.y + b * control.y + c * end.y];
    return { x: x - STEP / 4, y: y - STEP / 4, width: STEP / 2, height: STEP / 2 };
  });
}

/** Places the labels: that of the own site first, then those of large circles. */
function place(circles: Circle[], arcs: Arc[], own: number | null, picture: Box): Map<number, Label> {
  const boxes = circles.map(({ x, y, r }): Box => ({ x: x - r, y: y - r, width: 2 * r, height: 2 * r }));
  const obstacles = [...boxes, ...arcs.flatMap(alongArc)];
  const labels = new Map<number, Label>();
  const first = circles.filter(({ site }) => site.id === own);
  for (const circle of [...first, ...circles.filter((one) => !first.includes(one))]) {
    const best = candidates(circle)
      .map((label) => ({ label, hidden: hidden(label.box, obstacles, picture) }))
      .reduce((a, b) => (b.hidden < a.hidden - BETTER ? b : a));
    if (best.hidden > MAX_HIDDEN && circle.site.id !== own) continue;
    labels.set(circle.site.id, best.label);
    obstacles.push(best.label.box);
  }
  return labels;
}

/** Returns the possible labels of a circle, the preferred one first. */
function candidates({ site, x, y, r }: Circle): Label[] {
  const text = site.out ? `${site.name}: out` : site.name;
  const [width, height] = [text.length * CHARACTER_WIDTH, LABEL_HEIGHT];
  const label = (anchor: Label["anchor"], left: number, top: number): Label => ({
    text,
    anchor,
    box: { x: left, y: top, width, height },
  });
  const [right, left] = [x + r + GAP, x - r - GAP - width];
  const [level, above, below] = [y - height / 2, y - r - GAP - height, y + r + GAP];
  return [
    label("start", right, level),
    label("end", left, level),
    label("middle", x - width / 2, below),
    label("middle", x - width / 2, above),
    label("start", right - GAP, above + r / 2),
    label("start", right - GAP, below - r / 2),
    label("end", left + GAP, above + r / 2),
    label("end", left + GAP, below - r / 2),
  ];
}

/** Returns the share of a label that others cover or that is outside of the picture. */
function hidden(label: Box, obstacles: Box[], picture: Box): number {
  const area = label.width * label.height;
  const covered = obstacles.reduce((sum, box) => sum + overlap(label, box), 0);
  return (covered + area - overlap(label, picture)) / area;
}

/** Returns the common area of two boxes. */
function overlap(a: Box, b: Box): number {
  const width = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const height = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return Math.max(0, width) * Math.max(0, height);
}
