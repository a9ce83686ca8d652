// A queue of steps and drafts, stored in this browser until the server responds, and sent in order.

import { DONE, LOST, REFUSED, postWithFreshToken } from "./requests.js";
import { comparison, find, pageData, tab } from "./page.js";
import { add, keyPrefix, read, remove, removeOthers } from "./storage.js";

export const STEP = "step";
export const DRAFT = "draft";
const REPLACED = "replaced"; // by a newer item, before it was sent
export const ELSEWHERE = "elsewhere"; // another tab sent it

const MAX_RETRY_DELAY_MS = 60_000;

const prefix = () => keyPrefix("outbox", pageData().person, pageData().evaluation);
const waiting = new Map(); // id → resolve function of the promise for its response
let count = 0;
let sending = null;
let running = false;
let failures = 0;
let timer = 0;
let problemKind = ""; // why the first item could not be sent
let lateResponse = () => {};

export const items = () => read(prefix());
export const steps = () => items().filter((item) => item.kind === STEP);
export const problem = () => problemKind;

// Called with responses that no promise waits for.
export const onLateResponse = (handler) => { lateResponse = handler; };

const notifyChange = () => document.dispatchEvent(new CustomEvent("outbox"));

const removeItem = (id) => {
  remove(prefix(), id);
  notifyChange();
};

const resolveWaiter = (id, response) => {
  const waiter = waiting.get(id);
  waiting.delete(id);
  waiter?.(response);
  return Boolean(waiter);
};

// A newer draft, or a step that saves, replaces the previous draft of the same tab. Input from another tab is sent,
// so that the server can refuse it and the reviewer reads why.
const isReplacedBy = (item) => (other) =>
  other.tab === tab
  && other.id !== sending
  && other.comparison === item.comparison
  && (other.address === item.address || (other.kind === DRAFT && item.saves));

export const put = (item) => new Promise((resolve) => {
  const id = `${tab} ${(count += 1)}`;
  const replaced = items().filter(isReplacedBy(item));
  waiting.set(id, resolve);
  add(prefix(), id, { ...item, tab });
  for (const old of replaced) {
    remove(prefix(), old.id);
    resolveWaiter(old.id, { kind: REPLACED });
  }
  notifyChange();
  flush();
});

export const draftFor = (pk) => items().findLast((item) => item.kind === DRAFT && item.comparison === pk);

// Whether a save of this comparison is queued, which contains everything a draft would.
export const isSaving = (pk) => items().some((item) => item.saves && item.comparison === pk);

// A draft of this tab takes the latest number shown: earlier drafts were answered in the meantime.
const fieldsOf = (item) => {
  const fields = [...item.fields, ["tab", item.tab]];
  if (item.kind !== DRAFT) return fields;
  const seen = item.tab === tab && comparison() === item.comparison && find("#draft")?.dataset.number;
  return [...fields, ["number", seen || item.number]];
};

const send = async (item) => {
  sending = item.id;
  const response = await postWithFreshToken(item.address, fieldsOf(item), item.panel);
  sending = null;
  if (response.kind !== DONE && response.kind !== REFUSED) return keepForRetry(item, response);
  problemKind = "";
  failures = 0;
  removeItem(item.id);
  if (!resolveWaiter(item.id, response)) lateResponse(item, response);
  return true;
};

// Keeps the item and all later ones, and resolves their promises so that the reviewer can go on.
const keepForRetry = (item, response) => {
  problemKind = response.kind;
  failures += 1;
  if (response.kind === LOST) timer = setTimeout(flush, Math.min(MAX_RETRY_DELAY_MS, 1000 * 2 ** (failures - 1)));
  notifyChange();
  for (const id of [...waiting.keys()]) resolveWaiter(id, response);
  return false;
};

const sendAll = async () => {
  for (let item = items()[0]; item; item = items()[0]) if (!(await send(item))) return;
  for (const id of [...waiting.keys()]) resolveWaiter(id, { kind: ELSEWHERE });
};

// One tab sends at a time, to keep the order. Without HTTPS there are no locks, and the server recognizes duplicates.
const withLock = (task) => (navigator.locks ? navigator.locks.request(prefix(), task) : task());

const flush = async () => {
  if (running || !items().length) return;
  clearTimeout(timer);
  running = true;
  try {
    await withLock(sendAll);
  } finally {
    running = false;
  }
  if (!problemKind && items().length) flush();
};

export const retry = () => {
  failures = 0;
  flush();
};

// Another tab added or sent an item.
const handleStorageChange = () => {
  if (!items().length) problemKind = "";
  notifyChange();
};

export const start = () => {
  removeOthers(pageData().person);
  addEventListener("online", retry);
  addEventListener("focus", () => problemKind && retry());
  addEventListener("storage", handleStorageChange);
  addEventListener("beforeunload", (event) => {
    if (problemKind && items().length) event.preventDefault();
  });
  retry();
};
