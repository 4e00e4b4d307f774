// SPDX-License-Identifier: Apache-2.0
// Numbers as text.

const UNITS: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Returns a number with three significant digits and a decimal prefix. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [unit, name] of UNITS) {
    if (size >= unit * 0.9995) return `${significant(value / unit)}\u202f${name}`;
  }
  return size >= 100 || Number.isInteger(value) ? String(Math.round(value)) : significant(value);
}

function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size === 0 ? 0 : 2);
}

/** Returns a rate of bytes in bit/s. */
export function bits(bytesPerSecond: number | null): string {
  if (bytesPerSecond === null) return "–";
  const text = short(bytesPerSecond * 8);
  return /[TGMk]$/.test(text) ? `${text}bit/s` : `${text}\u202fbit/s`;
}

/** Returns a share as a percentage. */
export function percent(share: number | null): string {
  return share === null || !Number.isFinite(share) ? "–" : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}\u202f%`;
}

/** Returns a whole number with separated thousands. */
export function whole(value: number | null | undefined): string {
  return value === null || value === undefined
    ? "–"
    : Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
}

/** Returns an age in its largest unit. */
export function age(seconds: number): string {
  if (seconds < 1) return "now";
  if (seconds < 90) return `${Math.round(seconds)}\u202fs`;
  if (seconds < 5400) return `${Math.round(seconds / 60)}\u202fmin`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)}\u202fh`;
  return `${Math.round(seconds / 86_400)}\u202fdays`;
}

/** Returns the local time of an ISO 8601 text. */
export function time(text: string): string {
  const date = new Date(text);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
