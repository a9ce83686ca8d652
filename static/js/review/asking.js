// One request to the server, and what its answer means for what was sent.

import { desk, one, parsed, takeToken, token } from "./page.js";

export const DONE = "done"; // the server has taken it
export const REFUSED = "refused"; // it has not, and says why
export const LOST = "lost"; // nobody knows: to be sent again
export const SIGNED_OUT = "signed out";
export const SOMEONE_ELSE = "someone else"; // another person is signed in here now

const PATIENCE = 20_000;
const KEPT_ALIVE = 60_000; // so many characters a browser still sends while its page closes
const TRY_AGAIN = new Set([408, 425, 429]);

const headers = () => ({
  "HX-Request": "true",
  "HX-Current-URL": location.href,
  "X-CSRFToken": token(),
  "X-Person": desk().person,
});

const meaning = (answer, leads) => {
  if (answer.headers.get("X-Person")) return SOMEONE_ELSE;
  if (answer.type === "opaqueredirect" || answer.status === 401 || leads.startsWith(desk().signIn)) return SIGNED_OUT;
  if (answer.status >= 500 || TRY_AGAIN.has(answer.status)) return LOST;
  return answer.ok ? DONE : REFUSED;
};

const asked = async (address, options) => {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address, { headers: headers(), redirect: "manual", cache: "no-store", signal, ...options });
    const leads = answer.headers.get("HX-Redirect") ?? "";
    const text = answer.type === "opaqueredirect" ? "" : await answer.text();
    return { kind: meaning(answer, leads), status: answer.status, leads, text, headers: answer.headers };
  } catch {
    return { kind: LOST, status: 0, leads: "", text: "", headers: new Headers() };
  }
};

// Why the server did not take something.
export const wordsOf = (answer) => {
  if (answer.status === 404) return "You no longer take part here: what you entered was not stored.";
  if (answer.headers.get("Content-Type")?.includes("json")) return JSON.parse(answer.text).message;
  const page = parsed(answer.text);
  const words = (selector) => one(selector, page)?.textContent.replace(/\s+/g, " ").trim();
  if (answer.status === 403) return `${words("#main p") ?? ""} What you entered was not stored.`.trim();
  return words("#refusal p") ?? words("h1") ?? "The server did not take it.";
};

export const get = (address) => asked(address, { method: "GET" });

const post = (address, fields) => {
  const body = new URLSearchParams(fields);
  return asked(address, { method: "POST", body, keepalive: body.toString().length < KEPT_ALIVE });
};

// A session that began anew has another token: ask for it once, as the person whose page this is.
export const postAnew = async (address, fields, panelAddress) => {
  const answer = await post(address, fields);
  if (answer.status !== 403) return answer;
  const panel = await get(panelAddress);
  const fresh = parsed(panel.text).querySelector("[name=csrfmiddlewaretoken]")?.value;
  if (panel.kind !== DONE) return panel.kind === REFUSED ? answer : panel;
  if (!fresh) return answer;
  takeToken(fresh);
  return post(address, fields);
};
