// SPDX-License-Identifier: Apache-2.0
// Fetches a URL with node:quic into file OUT: `get_node_quic.mjs OUT URL [POLICY]`. POLICY applies to preferred addresses.
import { createWriteStream } from "node:fs";
import { connect } from "node:quic";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const [out, text, preferredAddressPolicy = "default"] = process.argv.slice(2);
const url = new URL(text);
const host = url.hostname.replace(/^\[|\]$/g, "");
const address = { address: host, port: Number(url.port || 443), family: host.includes(":") ? "ipv6" : "ipv4" };
const endpoint = { address: { address: host.includes(":") ? "::" : "0.0.0.0", port: 0, family: address.family } };
const session = await connect(address, { endpoint, alpn: "h3", verifyPeer: "manual", preferredAddressPolicy });
await session.opened;
const headers = { ":method": "GET", ":scheme": "https", ":authority": url.host, ":path": url.pathname };
const stream = await session.createBidirectionalStream({ headers });
await pipeline(async function* () {
  for await (const chunks of stream) yield* Array.isArray(chunks) ? chunks : [chunks];
}, createWriteStream(out));
await session.close();
