// Asks for a URL by Bun's fetch, HTTP/3 only: `get_bun_fetch.mjs OUT URL`. The body goes to file OUT.
const [out, url] = process.argv.slice(2);
const answer = await fetch(url, { protocol: "http3", tls: { rejectUnauthorized: false } });
if (!answer.ok) throw new Error(`status ${answer.status}`);
await Bun.write(out, answer);
