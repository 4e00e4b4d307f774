// SPDX-License-Identifier: Apache-2.0
// Runs oidc-provider: `node provider.mjs PORT KEYS_FILE`. Clients get tokens with their role, which is part of their name.
// The keys are a JWK set; a restart with other keys is a rotation.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [port, keysFile, modules] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));
const issuer = `http://127.0.0.1:${port}`;

const clients = ["viewer", "operator", "admin", "guest"].flatMap((role) =>
  ["frontage", "other"].map((audience) => ({
    client_id: `${role}-of-${audience}`,
    client_secret: "secret",
    id_token_signed_response_alg: "ES256",
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
  })),
);

const provider = new Provider(issuer, {
  clients,
  jwks: JSON.parse(readFileSync(keysFile, "utf8")),
  extraTokenClaims: (_context, token) => ({ frontage_role: token.clientId.split("-of-")[0] }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "https://frontage.example",
      getResourceServerInfo: (_context, _resource, client) => ({
        scope: "api",
        audience: client.clientId.split("-of-")[1],
        accessTokenTTL: 3,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
