// SPDX-License-Identifier: Apache-2.0
// Fetches a URL with Bun's fetch over HTTP/3 into file OUT: `get_bun_fetch.mjs OUT URL`.
const [out, url] = process.argv.slice(2);
const answer = await fetch(url, { protocol: "http3", tls: { rejectUnauthorized: false } });
if (!answer.ok) throw new Error(`status ${answer.status}`);
await Bun.write(out, answer);
