// The comparison after this one, fetched while this one is being read, so that Enter need not wait for it.

import { DONE, get } from "./asking.js";
import { comparison, desk, one } from "./page.js";
import * as outbox from "./outbox.js";

const AFTER = 300; // milliseconds in which the page itself comes first
const GOOD_FOR = 10 * 60_000; // later its place may have gone to somebody else

let next = null;
let timer = 0;
let asked = 0;

const besides = () => {
  const known = new Set([comparison(), ...outbox.steps().map((item) => item.comparison)]);
  return new URLSearchParams([...known].map((pk) => ["besides", pk]));
};

const fetchNext = async () => {
  const after = comparison();
  const number = (asked += 1);
  if (!after) return;
  const answer = await get(`${desk().ahead}?${besides()}`);
  const address = answer.headers.get("HX-Push-Url");
  const isCurrent = number === asked && after === comparison();
  if (isCurrent && answer.kind === DONE && address) keep({ after, address, html: answer.text, at: Date.now() });
};

const keep = (fetched) => {
  next = fetched;
  one("#desk").toggleAttribute("data-next-is-here", Boolean(fetched));
};

export const prepare = () => {
  if (next?.after !== comparison()) keep(null);
  clearTimeout(timer);
  if (!next) timer = setTimeout(fetchNext, AFTER);
};

export const forget = () => {
  keep(null);
  asked += 1;
};

// What follows on the comparison that is shown, if it is there already. Without a connection an old one will do.
export const ready = () => {
  if (next?.after !== comparison()) return null;
  return navigator.onLine && Date.now() - next.at > GOOD_FOR ? null : next;
};

// Put it before the person; going back in history asks the server for the page anew.
export const open = (prepared) => {
  history.replaceState({ htmx: true }, "", location.href);
  history.pushState({ htmx: true }, "", prepared.address);
  htmx.swap("#workbench", prepared.html, { swapStyle: "outerHTML" });
  scrollTo(0, 0);
};
