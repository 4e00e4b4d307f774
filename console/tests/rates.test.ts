// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { Meter, Meters, Series, variance } from "../src/state/rates";

describe("Meter", () => {
  it("returns the rate over the last seconds", () => {
    const meter = new Meter();
    [0, 10, 20, 50].forEach((value, at) => {
      meter.add(at, value);
    });
    expect(meter.rate(1)).toBe(30);
    expect(meter.rate(3)).toBeCloseTo(50 / 3);
    expect(meter.increase(2)).toBe(40);
  });

  it("knows no rate from one value", () => {
    const meter = new Meter();
    meter.add(5, 100);
    expect(meter.rate(3)).toBeNull();
  });

  it("begins anew when the switch restarts", () => {
    const meter = new Meter();
    meter.add(0, 1000);
    meter.add(1, 5);
    expect(meter.rate(3)).toBeNull();
    meter.add(2, 9);
    expect(meter.rate(3)).toBe(4);
  });

  it("ignores a sample that it already has", () => {
    const meters = new Meters();
    meters.add("a", 1, 1);
    meters.add("a", 1, 1);
    meters.add("a", 2, 3);
    expect(meters.rate("a")).toBe(2);
    expect(meters.rate("b")).toBeNull();
  });
});

describe("Series", () => {
  it("keeps the columns that remain when names change", () => {
    const series = new Series(["a", "b"]);
    series.add(1, ["a", "b"], [1, 2]);
    series.add(2, ["b", "c"], [3, 4]);
    expect(series.times).toEqual([1, 2]);
    expect(series.columns).toEqual([
      [2, 3],
      [null, 4],
    ]);
  });

  it("forgets values that are too old", () => {
    const series = new Series(["a"], 10);
    for (let at = 0; at < 30; at++) series.add(at, ["a"], [at]);
    expect(series.times[0]).toBe(19);
    expect(series.columns[0]?.length).toBe(series.times.length);
  });
});

it("computes the variance of a population", () => {
  expect(variance([1, 3])).toBe(1);
  expect(variance([])).toBe(0);
});
