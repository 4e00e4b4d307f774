// SPDX-License-Identifier: Apache-2.0
// The part of the earth that a map shows.
import { type GeoProjection, geoNaturalEarth1 } from "d3-geo";

/** Longitude and latitude in degrees, in the order of GeoJSON. */
export type Coordinates = [number, number];

/** The smallest extent of a map in degrees of longitude and latitude. */
const MIN_EXTENT: [number, number] = [36, 18];
/** A map of more degrees of longitude shows the whole earth, with Greenwich in the middle. */
const WHOLE_EARTH = 180;
/** The share of the width and height that stays free around the sites, for labels and arcs. */
const MARGIN = 0.12;

/** Returns the projection in which all points are visible in a picture of this size in pixels. */
export function projectionFor(points: Coordinates[], width: number, height: number): GeoProjection {
  const [west, east] = longitudes(points.map(([longitude]) => longitude));
  const latitudes = points.map(([, latitude]) => latitude);
  const middle = east - west > WHOLE_EARTH ? 0 : (west + east) / 2;
  const centre: Coordinates = [middle, (Math.min(...latitudes) + Math.max(...latitudes)) / 2];
  const [x, y] = [width * MARGIN, height * MARGIN];
  return geoNaturalEarth1()
    .rotate([-centre[0], 0])
    .fitExtent(
      [
        [x, y],
        [width - x, height - y],
      ],
      { type: "MultiPoint", coordinates: [...points, ...corners(centre)] },
    );
}

/**
 * Returns the western and eastern end of the shortest part of the equator that has all longitudes. The eastern end may be
 * above 180, if the part crosses the antimeridian.
 */
export function longitudes(values: number[]): [number, number] {
  const sorted = values.toSorted((a, b) => a - b);
  const gaps = sorted.map((value, i) => (sorted[i + 1] ?? (sorted[0] ?? 0) + 360) - value);
  const widest = gaps.indexOf(Math.max(...gaps));
  const west = sorted[(widest + 1) % sorted.length] ?? 0;
  const east = sorted[widest] ?? 0;
  return [west, east < west ? east + 360 : east];
}

/** Returns the corners of the smallest extent. */
function corners([longitude, latitude]: Coordinates): Coordinates[] {
  const [x, y] = [MIN_EXTENT[0] / 2, MIN_EXTENT[1] / 2];
  const [south, north] = [Math.max(-90, latitude - y), Math.min(90, latitude + y)];
  return [longitude - x, longitude + x].flatMap((at): Coordinates[] => [
    [at, south],
    [at, north],
  ]);
}
