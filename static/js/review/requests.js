// Sends one request to the server and classifies the response.

import { find, pageData, parseHtml, replaceToken, token } from "./page.js";

export const DONE = "done"; // the server accepted it
export const REFUSED = "refused"; // the server rejected it and says why
export const LOST = "lost"; // unknown: send it again
export const SIGNED_OUT = "signed out";
export const SOMEONE_ELSE = "someone else"; // another user is signed in here now

const TIMEOUT_MS = 20_000;
const MAX_KEEPALIVE_LENGTH = 60_000; // browsers send at most 64 KiB while a page closes
const RETRIABLE_STATUSES = new Set([408, 425, 429]);

const headers = () => ({
  "HX-Request": "true",
  "HX-Current-URL": location.href,
  "X-CSRFToken": token(),
  "X-Person": pageData().person,
});

const kindOf = (response, redirect) => {
  if (response.headers.get("X-Person")) return SOMEONE_ELSE;
  if (response.type === "opaqueredirect" || response.status === 401 || redirect.startsWith(pageData().signIn)) return SIGNED_OUT;
  if (response.status >= 500 || RETRIABLE_STATUSES.has(response.status)) return LOST;
  return response.ok ? DONE : REFUSED;
};

const request = async (address, options) => {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(address, { headers: headers(), redirect: "manual", cache: "no-store", signal, ...options });
    const redirect = response.headers.get("HX-Redirect") ?? "";
    const text = response.type === "opaqueredirect" ? "" : await response.text();
    return { kind: kindOf(response, redirect), status: response.status, redirect, text, headers: response.headers };
  } catch {
    return { kind: LOST, status: 0, redirect: "", text: "", headers: new Headers() };
  }
};

// Why the server rejected a request.
export const errorMessage = (response) => {
  if (response.status === 404) return "You are no longer a member here. Your input was not saved.";
  if (response.headers.get("Content-Type")?.includes("json")) return JSON.parse(response.text).message;
  const page = parseHtml(response.text);
  const textOf = (selector) => find(selector, page)?.textContent.replace(/\s+/g, " ").trim();
  if (response.status === 403) return `${textOf("#main p") ?? ""} Your input was not saved.`.trim();
  return textOf("#refusal p") ?? textOf("h1") ?? "The server refused it.";
};

export const get = (address) => request(address, { method: "GET" });

const post = (address, fields) => {
  const body = new URLSearchParams(fields);
  return request(address, { method: "POST", body, keepalive: body.toString().length < MAX_KEEPALIVE_LENGTH });
};

// A new session has a new token, so fetch it once, for the user whose page this is.
export const postWithFreshToken = async (address, fields, panelAddress) => {
  const response = await post(address, fields);
  if (response.status !== 403) return response;
  const panel = await get(panelAddress);
  const fresh = parseHtml(panel.text).querySelector("[name=csrfmiddlewaretoken]")?.value;
  if (panel.kind !== DONE) return panel.kind === REFUSED ? response : panel;
  if (!fresh) return response;
  replaceToken(fresh);
  return post(address, fields);
};
