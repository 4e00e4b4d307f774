// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { logIn, loginError } from "../state/session";
import { Message } from "../ui/parts";

export function LoginView() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await logIn(token.trim());
    setBusy(false);
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>
          <img src="./icon.svg" alt="" width="36" height="36" /> Frontage
        </h1>
        <p>The console of the controller.</p>
        <label>
          Token
          <input
            type="password"
            autocomplete="current-password"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
            required
          />
        </label>
        {loginError.value !== null && <Message tone="bad">{loginError.value}</Message>}
        <button type="submit" class="primary" disabled={busy}>
          Log in
        </button>
        <p class="hint">
          <code>frontage token NAME --may operator</code> makes a token. It stays in this tab until you close it.
        </p>
      </form>
    </main>
  );
}
