// Steps and drafts on their way: each is kept in this browser until the server has answered, and they go out in order.

import { DONE, LOST, REFUSED, postAnew } from "./asking.js";
import { comparison, desk, one, tab } from "./page.js";
import { add, keepOnlyOf, nameOf, read, remove } from "./storage.js";

export const STEP = "step";
export const DRAFT = "draft";
const REPLACED = "replaced"; // by a newer one, before it was sent
export const ELSEWHERE = "elsewhere"; // another page of this browser sent it

const LONGEST_WAIT = 60_000;

const name = () => nameOf("outbox", desk().person, desk().evaluation);
const waiting = new Map(); // id → who waits for its answer
let count = 0;
let sending = null;
let running = false;
let failures = 0;
let timer = 0;
let trouble = ""; // why the first one could not be sent
let late = () => {};

export const items = () => read(name());
export const steps = () => items().filter((item) => item.kind === STEP);
export const troubled = () => trouble;

// Who takes the answers that came when nobody waited for them any more.
export const whenLate = (taker) => { late = taker; };

const announce = () => document.dispatchEvent(new CustomEvent("outbox"));

const takeOut = (id) => {
  remove(name(), id);
  announce();
};

const tell = (id, answer) => {
  const waiter = waiting.get(id);
  waiting.delete(id);
  waiter?.(answer);
  return Boolean(waiter);
};

// A newer draft replaces the previous one of the same page, and so does a step that saves. What another page entered
// is sent, so that the server can refuse it and the person reads why.
const isReplacedBy = (item) => (other) =>
  other.tab === tab
  && other.id !== sending
  && other.comparison === item.comparison
  && (other.address === item.address || (other.kind === DRAFT && item.saves));

export const put = (item) => new Promise((resolve) => {
  const id = `${tab} ${(count += 1)}`;
  const replaced = items().filter(isReplacedBy(item));
  waiting.set(id, resolve);
  add(name(), id, { ...item, tab });
  for (const gone of replaced) {
    remove(name(), gone.id);
    tell(gone.id, { kind: REPLACED });
  }
  announce();
  flush();
});

export const draftFor = (pk) => items().findLast((item) => item.kind === DRAFT && item.comparison === pk);

// Whether a save of this comparison is on its way, which holds all that a draft could say.
export const isSaving = (pk) => items().some((item) => item.saves && item.comparison === pk);

// The number of a draft of this page is the one that it has seen by now: the drafts before it were answered meanwhile.
const fieldsOf = (item) => {
  const fields = [...item.fields, ["tab", item.tab]];
  if (item.kind !== DRAFT) return fields;
  const seen = item.tab === tab && comparison() === item.comparison && one("#draft")?.dataset.number;
  return [...fields, ["number", seen || item.number]];
};

const send = async (item) => {
  sending = item.id;
  const answer = await postAnew(item.address, fieldsOf(item), item.panel);
  sending = null;
  if (answer.kind !== DONE && answer.kind !== REFUSED) return hold(item, answer);
  trouble = "";
  failures = 0;
  takeOut(item.id);
  if (!tell(item.id, answer)) late(item, answer);
  return true;
};

// It stays, and everything after it; who waits is told, so that the person can go on.
const hold = (item, answer) => {
  trouble = answer.kind;
  failures += 1;
  if (answer.kind === LOST) timer = setTimeout(flush, Math.min(LONGEST_WAIT, 1000 * 2 ** (failures - 1)));
  announce();
  for (const id of [...waiting.keys()]) tell(id, answer);
  return false;
};

const sendAll = async () => {
  for (let item = items()[0]; item; item = items()[0]) if (!(await send(item))) return;
  for (const id of [...waiting.keys()]) tell(id, { kind: ELSEWHERE });
};

// One page of this browser sends at a time, so that order holds; without HTTPS there are no locks, and the server
// recognises what comes twice.
const alone = (work) => (navigator.locks ? navigator.locks.request(name(), work) : work());

const flush = async () => {
  if (running || !items().length) return;
  clearTimeout(timer);
  running = true;
  try {
    await alone(sendAll);
  } finally {
    running = false;
  }
  if (!trouble && items().length) flush();
};

export const again = () => {
  failures = 0;
  flush();
};

// Another page of this browser sent something, or has something to send.
const changedElsewhere = () => {
  if (!items().length) trouble = "";
  announce();
};

export const start = () => {
  keepOnlyOf(desk().person);
  addEventListener("online", again);
  addEventListener("focus", () => trouble && again());
  addEventListener("storage", changedElsewhere);
  addEventListener("beforeunload", (event) => {
    if (trouble && items().length) event.preventDefault();
  });
  again();
};
