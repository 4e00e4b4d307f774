// SPDX-License-Identifier: Apache-2.0
// A chart of values over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "../state/rates";
import { theme } from "../state/theme";

/** Colours that differ in lightness too, for colour-blind readers (after Okabe and Ito). */
export const COLOURS: Record<"light" | "dark", string[]> = {
  light: ["#0b6bcb", "#c2570c", "#0f8a5f", "#a03a8d", "#7a6a00", "#0e8aa8", "#c22f43", "#5b5bd6"],
  dark: ["#5aa9ff", "#ff9d57", "#45cf9b", "#e58bd3", "#e0cb4a", "#58d3ef", "#ff7f8f", "#a5a5ff"],
};

export function colour(index: number): string {
  const all = COLOURS[theme.value];
  return all[index % all.length] ?? "#888";
}

interface Mark {
  /** Time in seconds. */
  at: number;
  text: string;
}

interface Props {
  title: string;
  /** Read with each new `stamp`. */
  series: Series;
  stamp: number;
  format: (value: number) => string;
  height?: number;
  marks?: Mark[];
  /** Seconds that the chart shows. */
  window?: number;
}

export function Chart({ title, series, stamp, format, height = 170, marks = [], window: shown = 120 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ marks, format });
  latest.current = { marks, format };
  const names = series.names.join("\n");
  const mode = theme.value;
  useEffect(() => {
    const node = place.current;
    if (node === null) return;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--muted").trim();
    const grid = { stroke: style.getPropertyValue("--line").trim(), width: 1 };
    const font = "11px system-ui, sans-serif";
    const options: uPlot.Options = {
      width: Math.max(200, node.clientWidth),
      height,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), high <= 0 ? 1 : high * 1.12] } },
      axes: [
        { stroke: ink, grid, ticks: grid, font, space: 80, size: 28, values: (_, ticks) => ticks.map(clockTime) },
        {
          stroke: ink,
          grid,
          ticks: { show: false },
          font,
          size: 76,
          values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)),
        },
      ],
      series: [
        {},
        ...series.names.map((label, i) => ({ label, stroke: colour(i), width: 1.6, points: { show: false } })),
      ],
      hooks: { draw: [(u) => drawMarks(u, latest.current.marks, style)] },
    };
    plot.current = new uPlot(options, [[]], node);
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: Math.max(200, node.clientWidth), height });
    });
    observer.observe(node);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, mode, height]);
  useEffect(() => {
    const u = plot.current;
    const end = series.times.at(-1);
    if (u === null || end === undefined) return;
    u.setData([series.times, ...series.columns] as uPlot.AlignedData, false);
    u.batch(() => {
      const begin = Math.max(end - shown, series.times[0] ?? end);
      u.setScale("x", { min: Math.min(begin, end - 10), max: end });
    });
  }, [stamp, names, mode]);

  const values = series.columns.map((column) => column.at(-1) ?? null);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {series.names.map((name, i) => (
            <span key={name} class="legend-item">
              <i style={{ background: colour(i) }} />
              {name} <b>{values[i] === null || values[i] === undefined ? "–" : format(values[i] ?? 0)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${title}: ${summary(series, values, format)}`} />
    </figure>
  );
}

/** Returns the local time of a Unix time. */
function clockTime(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 8);
}

function summary(series: Series, values: (number | null)[], format: (value: number) => string): string {
  const parts = series.names.map((name, i) => `${name} ${values[i] === null ? "unknown" : format(values[i] ?? 0)}`);
  return parts.join(", ") || "no values yet";
}

function drawMarks(u: uPlot, marks: Mark[], style: CSSStyleDeclaration): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  ctx.save();
  ctx.strokeStyle = style.getPropertyValue("--accent").trim();
  ctx.fillStyle = ctx.strokeStyle;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = u.valToPos(mark.at, "x", true);
    if (x < left || x > left + width) continue;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    const after = x + ctx.measureText(mark.text).width + 8 < left + width;
    ctx.textAlign = after ? "left" : "right";
    ctx.fillText(mark.text, after ? x + 5 : x - 5, top + 12 * devicePixelRatio);
  }
  ctx.restore();
}
