// Fetches the next comparison while the current one is read, so that Enter need not wait for it.

import { DONE, get } from "./requests.js";
import { comparison, find, pageData } from "./page.js";
import * as outbox from "./outbox.js";

const DELAY_MS = 300; // the page itself loads first
const MAX_AGE_MS = 10 * 60_000; // later its reservation may have expired

let prefetched = null;
let timer = 0;
let lastRequest = 0;

const excludedComparisons = () => {
  const excluded = new Set([comparison(), ...outbox.steps().map((item) => item.comparison)]);
  return new URLSearchParams([...excluded].map((pk) => ["besides", pk]));
};

const fetchNext = async () => {
  const after = comparison();
  const number = (lastRequest += 1);
  if (!after) return;
  const response = await get(`${pageData().nextUrl}?${excludedComparisons()}`);
  const address = response.headers.get("HX-Push-Url");
  const isCurrent = number === lastRequest && after === comparison();
  if (isCurrent && response.kind === DONE && address) store({ after, address, html: response.text, at: Date.now() });
};

const store = (page) => {
  prefetched = page;
  find("#review-page").toggleAttribute("data-has-next", Boolean(page));
};

export const schedule = () => {
  if (prefetched?.after !== comparison()) store(null);
  clearTimeout(timer);
  if (!prefetched) timer = setTimeout(fetchNext, DELAY_MS);
};

export const discard = () => {
  store(null);
  lastRequest += 1;
};

// The comparison after the one shown, if it was fetched. Offline, an old one is good enough.
export const ready = () => {
  if (prefetched?.after !== comparison()) return null;
  return navigator.onLine && Date.now() - prefetched.at > MAX_AGE_MS ? null : prefetched;
};

// Shows it; going back in history loads the page from the server again.
export const open = (next) => {
  history.replaceState({ htmx: true }, "", location.href);
  history.pushState({ htmx: true }, "", next.address);
  htmx.swap("#comparison", next.html, { swapStyle: "outerHTML" });
  scrollTo(0, 0);
};
