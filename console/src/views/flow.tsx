// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { ask } from "../api/client";
import type { Explanation } from "../api/schema";
import { overview } from "../state/live";
import { Empty, Message, Panel, TextField } from "../ui/parts";

const KINDS: Record<string, string> = {
  address: "an address",
  client: "a client without a cookie",
  "cookie-address": "a cookie address",
  "connection-id": "a QUIC connection id",
  timestamp: "a TCP timestamp",
};

export function FlowView() {
  const vips = overview.state.value.value?.vips ?? [];
  const [text, setText] = useState("");
  const [vip, setVip] = useState("");
  const [client, setClient] = useState("");
  const [port, setPort] = useState("");
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = {
      text,
      ...(vip === "" ? {} : { vip }),
      ...(client === "" ? {} : { client }),
      ...(port === "" ? {} : { client_port: Number(port) }),
    };
    try {
      setFound(await ask<Explanation>("explanations", body));
      setError(null);
    } catch (problem) {
      setFound(null);
      setError(problem instanceof Error ? problem.message : String(problem));
    }
  };
  return (
    <div class="view">
      <div class="title">
        <h1>Flow</h1>
      </div>
      <Panel title="Which server, and why?">
        <form class="fields" onSubmit={submit}>
          <label class="wide">
            Address, client:port, cookie address, connection id, TSval or TSecr
            <input
              class="mono"
              name="text"
              value={text}
              required
              autocomplete="off"
              spellcheck={false}
              placeholder="203.0.113.7:51034 · 2001:db8:c00c:1e:4a1b:… · 0x6b3fd21c"
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <label>
            VIP
            <select value={vip} onChange={(event) => setVip(event.currentTarget.value)}>
              <option value="">any</option>
              {vips.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
          <TextField
            label={
              <>
                Client <small>for a timestamp</small>
              </>
            }
            name="client"
            value={client}
            onChange={setClient}
          />
          <TextField label="Port of the client" name="port" value={port} onChange={setPort} numeric />
          <button type="submit" class="primary">
            Explain
          </button>
        </form>
      </Panel>
      {error !== null && <Message tone="bad">{error}</Message>}
      {found !== null && (
        <Panel title={`This is ${KINDS[found.kind] ?? found.kind}`}>
          <p class="answer">
            {found.server !== null ? (
              <>
                <span class="answer-name">{found.server}</span>
                {found.vip !== null && <a href={`#/vips/${encodeURIComponent(found.vip)}`}>of the VIP {found.vip}</a>}
              </>
            ) : (
              <span class="answer-name">no server</span>
            )}
          </p>
          <ol class="findings">
            {found.findings.map((one) => (
              <li key={one.what} class={one.holds ? "holds" : "fails"}>
                <b>{one.what}</b>
                <span>{one.result}</span>
              </li>
            ))}
          </ol>
        </Panel>
      )}
      {found === null && error === null && (
        <Empty>
          A packet with a cookie goes to the server in the cookie. The controller unseals it with the installed keys.
          Without a cookie, Maglev's table decides.
        </Empty>
      )}
    </div>
  );
}
