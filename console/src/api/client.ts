// SPDX-License-Identifier: Apache-2.0
// Requests to the controller's API.
import type { ProblemDetails } from "./schema";

/** A request that the controller rejected or that did not reach it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const BASE = new URL("../v1/", document.baseURI).pathname;

let bearer: string | null = null;
let onUnauthorized: () => void = () => {};

/** Sets the token of all requests. `rejected` is called when the controller does not accept it. */
export function authorize(token: string | null, rejected: () => void): void {
  bearer = token;
  onUnauthorized = rejected;
}

/** The headers of a request with the token. */
export function headers(more: Record<string, string> = {}): Record<string, string> {
  return bearer === null ? more : { ...more, Authorization: `Bearer ${bearer}` };
}

/** Returns the URL of a path below `/v1`. */
export function url(path: string): string {
  return BASE + path.replace(/^\//, "");
}

async function failure(response: Response): Promise<ApiError> {
  let text = response.statusText;
  try {
    const problem = (await response.json()) as ProblemDetails;
    text = problem.detail ?? problem.title;
  } catch {
    // Not a problem document: the status must do.
  }
  if (response.status === 401) {
    onUnauthorized();
  }
  return new ApiError(response.status, text);
}

async function send(
  method: string,
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<Response> {
  const type: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  let response: Response;
  try {
    response = await fetch(url(path), {
      method,
      headers: headers({ ...type, ...more }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(70_000),
    });
  } catch {
    throw new ApiError(0, "the controller does not answer: check that it runs and that the network reaches it");
  }
  if (!response.ok) {
    throw await failure(response);
  }
  return response;
}

/** Reads an object. */
export async function get<T>(path: string): Promise<T> {
  return (await (await send("GET", path)).json()) as T;
}

/** Reads a text, such as the configuration. */
export async function getText(path: string): Promise<string> {
  return (await send("GET", path)).text();
}

/** Changes something, once even if the request is repeated. */
export async function change<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  return (await (await send(method, path, body, { "Idempotency-Key": crypto.randomUUID() })).json()) as T;
}

/** Asks a question whose text is too long for a URL. Nothing changes. */
export async function ask<T>(path: string, body: unknown): Promise<T> {
  return (await (await send("POST", path, body)).json()) as T;
}

/** Opens the stream of events. */
export async function openEvents(lastId: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const last: Record<string, string> = lastId === null ? {} : { "Last-Event-ID": lastId };
  const response = await fetch(url("events"), { headers: headers({ Accept: "text/event-stream", ...last }), signal });
  if (!response.ok || response.body === null) {
    throw await failure(response);
  }
  return response.body;
}
