// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { PlacedService } from "../src/api/schema";
import { type Box, type Circle, type Layout, layOut, type Point } from "../src/map/layout";
import { coordinates, type Move, moves } from "../src/map/moves";
import { longitudes, projectionFor } from "../src/map/projection";
import { type LocatedSite, located, shares } from "../src/state/sites";

const SIZE: [number, number] = [1000, 420];

function site(id: number, name: string, latitude: number, longitude: number, out = false): LocatedSite {
  const location = { latitude, longitude };
  return { id, name, endpoint: "::1", sids: [0, 1], tunnel: "vxlan", dispatchers: [], location, out };
}

const FRANKFURT = site(1, "frankfurt", 50.1, 8.7);
const TOKYO = site(2, "tokyo", 35.7, 139.7);
const SYDNEY = site(3, "sydney", -33.9, 151.2);
const MONTREAL = site(4, "montreal", 45.5, -73.6);
const OSAKA = site(5, "osaka", 34.7, 135.5);
const EARTH = [FRANKFURT, TOKYO, SYDNEY, MONTREAL, OSAKA];

function placed(name: string, stages: Record<number, string>, more: Partial<PlacedService> = {}): PlacedService {
  const sites = Object.entries(stages).map(([id, stage]) => ({ site: Number(id), stage, since: 0 }));
  const rest = { handshakes_per_second: 1, last_move: null, adds: [], removes: [], begun: false, error: null };
  return { name, sites, ...rest, ...more };
}

function draw(sites: LocatedSite[], more: Partial<Parameters<typeof layOut>[0]> = {}, size = SIZE): Layout {
  const projection = projectionFor(sites.map(coordinates), ...size);
  return layOut({ sites, moves: [], share: new Map(), own: null, ...more }, projection, size);
}

function circle(of: Layout, { id }: LocatedSite): Circle {
  const found = of.circles.find((one) => one.site.id === id);
  if (found === undefined) throw new Error(`no circle of site ${id}`);
  return found;
}

describe("projection", () => {
  it("keeps west and east, north and south", () => {
    const picture = draw(EARTH);
    expect(circle(picture, MONTREAL).x).toBeLessThan(circle(picture, FRANKFURT).x);
    expect(circle(picture, FRANKFURT).x).toBeLessThan(circle(picture, TOKYO).x);
    expect(circle(picture, FRANKFURT).y).toBeLessThan(circle(picture, TOKYO).y);
    expect(circle(picture, TOKYO).y).toBeLessThan(circle(picture, SYDNEY).y);
  });

  it.each([
    [[1000, 420], EARTH],
    [[350, 230], EARTH],
    [
      [1000, 420],
      [FRANKFURT, TOKYO],
    ],
    [
      [350, 230],
      [TOKYO, SYDNEY],
    ],
    [[350, 230], [SYDNEY]],
    [
      [1000, 420],
      [site(1, "north", 90, 0), site(2, "south", -90, 180)],
    ],
  ] as [[number, number], LocatedSite[]][])("shows all sites in %j", (size, sites) => {
    for (const { x, y } of draw(sites, {}, size).circles) {
      expect(x).toBeGreaterThan(0);
      expect(x).toBeLessThan(size[0]);
      expect(y).toBeGreaterThan(0);
      expect(y).toBeLessThan(size[1]);
    }
  });

  it("zooms to the sites, but not further than the smallest extent", () => {
    const scale = (...sites: LocatedSite[]) => projectionFor(sites.map(coordinates), ...SIZE).scale();
    const near = site(6, "mainz", 50, 8.3);
    expect(scale(FRANKFURT, TOKYO)).toBeGreaterThan(1.2 * scale(...EARTH));
    expect(scale(FRANKFURT, near)).toBeGreaterThan(1.2 * scale(FRANKFURT, TOKYO));
    expect(scale(FRANKFURT, near)).toBeCloseTo(scale(FRANKFURT), -2);
  });

  it("crosses the antimeridian where that is shorter", () => {
    expect(longitudes([139.7, -122])).toEqual([139.7, 238]);
    expect(longitudes([8.7, 139.7])).toEqual([8.7, 139.7]);
    expect(longitudes([-170])).toEqual([-170, -170]);
    const picture = draw([TOKYO, site(7, "san-francisco", 37.4, -122)]);
    expect(circle(picture, TOKYO).x).toBeLessThan(picture.circles.find((one) => one.site.id === 7)?.x ?? 0);
  });
});

describe("shares", () => {
  it("are those of the regions of all services", () => {
    const service = { vip: "v", name: "n", id: 1, deployment: 1 };
    const first = [
      { site: 1, regions: 6 },
      { site: 2, regions: 1 },
    ];
    const services = [
      { ...service, regions_by_site: first },
      { ...service, regions_by_site: [{ site: 2, regions: 1 }] },
    ];
    expect(shares({ services })).toEqual(
      new Map([
        [1, 0.75],
        [2, 0.25],
      ]),
    );
    expect(shares({ services: [] }).size).toBe(0);
  });

  it("are the areas of circles, the largest of which are below the others", () => {
    const share = new Map([
      [2, 0.8],
      [1, 0.2],
    ]);
    const picture = draw([FRANKFURT, TOKYO, SYDNEY], { share });
    expect(picture.circles.map((one) => one.site.name)).toEqual(["tokyo", "frankfurt", "sydney"]);
    const [large, medium, small] = picture.circles.map((one) => one.r);
    expect((large ?? 0) / (medium ?? 1)).toBeCloseTo(2);
    expect(small).toBeGreaterThan(3);
  });

  it("need no location", () => {
    expect(located([FRANKFURT, { ...TOKYO, location: null }])).toEqual([FRANKFURT]);
  });
});

describe("labels", () => {
  const overlaps = (a: Box, b: Box) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

  it("do not overlap", () => {
    const cities = Array.from({ length: 40 }, (_, i) => site(i, `city-number-${i}`, 45 + ((i * 7) % 9), (i * 5) % 31));
    const boxes = [...draw(cities, { own: 17 }).labels.values()].map((label) => label.box);
    expect(boxes.length).toBeGreaterThan(10);
    // A label may lose the margin of its line.
    const lines = boxes.map((box) => ({ ...box, y: box.y + 3, height: box.height - 6 }));
    expect(lines.filter((a, i) => lines.some((b, j) => i < j && overlaps(a, b)))).toEqual([]);
  });

  it("stay in the picture, and include that of the own site", () => {
    const crowd = Array.from({ length: 30 }, (_, i) => site(i, `munich-${i}`, 48.1 + i / 1000, 11.6));
    const { labels } = draw([...crowd, TOKYO], { own: 29 }, [350, 230]);
    expect(labels.has(29)).toBe(true);
    expect(labels.size).toBeLessThan(30);
    const { x, width } = labels.get(TOKYO.id)?.box ?? { x: -1, width: 0 };
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(350);
  });

  it("say which sites are out", () => {
    expect(draw([FRANKFURT, { ...TOKYO, out: true }]).labels.get(TOKYO.id)?.text).toBe("tokyo: out");
  });
});

describe("moves", () => {
  it("lead from the nearest site that the service leaves", () => {
    const service = placed("films", { 1: "leaving", 5: "leaving", 2: "starting" }, { adds: [2], removes: [1, 5] });
    expect(moves([service], EARTH)).toEqual([
      { from: 5, to: 2, services: ["films"], begun: true },
      { from: 1, to: 2, services: ["films"], begun: true },
    ]);
  });

  it("lead from the nearest site that the service keeps if it leaves none", () => {
    const service = placed("films", { 1: "active", 2: "active", 4: "draining" }, { adds: [3] });
    expect(moves([service], EARTH)).toEqual([{ from: 2, to: 3, services: ["films"], begun: false }]);
  });

  it("lead to the nearest site that the service keeps if it gets none", () => {
    const service = placed("films", { 1: "active", 2: "active", 5: "active" }, { removes: [2] });
    expect(moves([service], EARTH)).toEqual([{ from: 2, to: 5, services: ["films"], begun: false }]);
  });

  it("of several services are one arc", () => {
    const services = [placed("films", { 1: "leaving", 2: "starting" }), placed("maps", { 1: "active" }, { adds: [2] })];
    expect(moves(services, EARTH)).toEqual([{ from: 1, to: 2, services: ["films", "maps"], begun: true }]);
  });

  it("need locations at both ends, and a service that moves", () => {
    const service = placed("films", { 1: "leaving", 2: "starting" });
    expect(moves([service], [FRANKFURT])).toEqual([]);
    expect(moves([placed("films", { 1: "active", 4: "draining" })], EARTH)).toEqual([]);
  });

  it("are drawn from circle to circle, with both directions apart", () => {
    const there = { from: 1, to: 2, services: ["films"], begun: true };
    const picture = draw(EARTH, { moves: [there, { ...there, from: 2, to: 1 }] });
    const [out, back] = picture.arcs;
    const [from, to] = [circle(picture, FRANKFURT), circle(picture, TOKYO)];
    const distance = (a: Point | undefined, b: Circle) => Math.hypot((a?.x ?? 0) - b.x, (a?.y ?? 0) - b.y);
    expect(distance(out?.begin, from)).toBeLessThan(from.r + 12);
    expect(distance(out?.end, to)).toBeLessThan(to.r + 12);
    expect(distance(back?.begin, to)).toBeLessThan(to.r + 12);
    expect(out?.control.y).toBeLessThan(from.y);
    expect(back?.control.y).toBeGreaterThan(from.y);
  });

  it("are avoided by labels", () => {
    const label = (moves: Move[]) => draw([FRANKFURT, TOKYO], { moves }).labels.get(FRANKFURT.id)?.anchor;
    expect(label([])).toBe("start");
    expect(label([{ from: 1, to: 2, services: ["films"], begun: true }])).not.toBe("start");
  });
});
