// SPDX-License-Identifier: Apache-2.0
// Rates of counters, from samples at different times.

/** A counter at a time in seconds. */
interface Point {
  at: number;
  value: number;
}

/** Remembers a counter's recent values. */
export class Meter {
  private points: Point[] = [];

  constructor(private readonly keep = 60) {}

  /** Adds a value. A smaller one than before means that the switch restarted, so earlier values are forgotten. */
  add(at: number, value: number): void {
    const last = this.points.at(-1);
    if (last !== undefined && at <= last.at) return;
    if (last !== undefined && value < last.value) this.points = [];
    this.points.push({ at, value });
    while (this.points.length > 2 && (this.points[0]?.at ?? 0) < at - this.keep) this.points.shift();
  }

  /** Returns the increase over the last seconds; null with fewer than two values. */
  increase(seconds: number): number | null {
    const last = this.points.at(-1);
    const first = this.since(seconds);
    return last === undefined || first === undefined || first === last ? null : last.value - first.value;
  }

  /** Returns the increase per second over the last seconds. */
  rate(seconds: number): number | null {
    const last = this.points.at(-1);
    const first = this.since(seconds);
    if (last === undefined || first === undefined || first === last) return null;
    return (last.value - first.value) / (last.at - first.at);
  }

  private since(seconds: number): Point | undefined {
    const last = this.points.at(-1);
    if (last === undefined) return undefined;
    const wanted = last.at - seconds;
    let found = this.points[0];
    for (const point of this.points) {
      if (point.at > wanted) break;
      found = point;
    }
    return found === last ? this.points.at(-2) : found;
  }
}

/** Meters by name. */
export class Meters {
  private readonly meters = new Map<string, Meter>();

  add(name: string, at: number, value: number): void {
    let meter = this.meters.get(name);
    if (meter === undefined) {
      meter = new Meter();
      this.meters.set(name, meter);
    }
    meter.add(at, value);
  }

  rate(name: string, seconds = 3): number | null {
    return this.meters.get(name)?.rate(seconds) ?? null;
  }

  increase(name: string, seconds: number): number | null {
    return this.meters.get(name)?.increase(seconds) ?? null;
  }
}

/** Columns of values over time, for charts: the first one holds times in seconds. */
export class Series {
  times: number[] = [];
  columns: (number | null)[][] = [];

  constructor(
    public names: string[],
    private readonly keep = 120,
  ) {
    this.columns = names.map(() => []);
  }

  /** Adds a row. With other names than before, the series begins anew. */
  add(at: number, names: string[], values: (number | null)[]): void {
    if (names.length !== this.names.length || names.some((name, i) => name !== this.names[i])) {
      const before = new Map(this.names.map((name, i) => [name, this.columns[i] ?? []]));
      this.names = names;
      this.columns = names.map((name) => before.get(name) ?? this.times.map(() => null));
    }
    if (this.times.length > 0 && at <= (this.times.at(-1) ?? 0)) return;
    this.times.push(at);
    this.columns.forEach((column, i) => {
      column.push(values[i] ?? null);
    });
    while (this.times.length > 2 && (this.times[0] ?? 0) < at - this.keep) {
      this.times.shift();
      for (const column of this.columns) column.shift();
    }
  }
}

/** Returns the population variance of the values. */
export function variance(values: number[]): number {
  if (values.length === 0) return 0;
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
}
