// Shows unsent changes and refused ones until they are sent or dismissed.

import { LOST, SIGNED_OUT, SOMEONE_ELSE } from "./requests.js";
import { find, pageData, pluralize, scrollIntoView, tab } from "./page.js";
import * as outbox from "./outbox.js";
import { add, keyPrefix, read, remove } from "./storage.js";

const ALL_SENT_MS = 8000;

let unsentCount = 0;
let timer = 0;
let count = 0;

const box = () => find("#unsent");
const setMessage = (message) => {
  const line = find("#unsent-words");
  if (line.textContent !== message) line.textContent = message;
};

const describeWaiting = () => {
  const steps = outbox.steps().length;
  const drafts = outbox.items().length - steps;
  return [steps && pluralize(steps, "step"), drafts && pluralize(drafts, "draft")].filter(Boolean).join(" and ");
};

const REASONS = {
  [LOST]: (what) => `No connection: ${what} kept in this browser and sent later. You can go on.`,
  [SIGNED_OUT]: (what) => `Signed out: ${what} kept in this browser until you sign in.`,
  [SOMEONE_ELSE]: (what) => `Another user is signed in here: ${what} of yours not sent.`,
};

const showAllSent = () => {
  setMessage(`Back online: ${pluralize(unsentCount, "change")} sent.`);
  unsentCount = 0;
  clearTimeout(timer);
  timer = setTimeout(() => { box().hidden = !refusals().length; setMessage(""); }, ALL_SENT_MS);
};

export const draw = () => {
  const problem = outbox.items().length ? outbox.problem() : "";
  if (problem) {
    clearTimeout(timer);
    unsentCount = Math.max(unsentCount, outbox.items().length);
    box().hidden = false;
    setMessage(REASONS[problem](describeWaiting()));
  } else if (unsentCount && !outbox.items().length) {
    showAllSent();
  }
  box().dataset.problem = problem;
  find("#unsent-again").hidden = problem !== LOST;
  find("#unsent-sign-in").hidden = problem !== SIGNED_OUT;
  drawRefusals();
};

// ---- steps and drafts refused after the reviewer moved on

const prefix = () => keyPrefix("refused", pageData().person, pageData().evaluation);

// One notice per comparison is enough: a newer draft or a save contains all of an older draft from the same tab.
const isReplacedBy = (refusal) => (other) =>
  other.kind === outbox.DRAFT
  && other.id !== refusal.id
  && other.comparison === refusal.comparison
  && other.tab === refusal.tab
  && (refusal.saves || (refusal.kind === outbox.DRAFT && refusal.at > other.at));

// Tabs see each other's storage late: one may report a refused save before it sees that another reported its draft.
const refusals = () => {
  const all = read(prefix());
  return all.filter((refusal) => !all.some((other) => isReplacedBy(other)(refusal)));
};

export const refuse = (refusal) => {
  add(prefix(), `${tab} ${(count += 1)}`, refusal);
  draw();
  scrollIntoView(box());
};

const dismiss = (refusal) => {
  for (const replaced of [refusal, ...read(prefix()).filter(isReplacedBy(refusal))]) remove(prefix(), replaced.id);
  draw();
  if (!refusals().length && !outbox.problem()) box().hidden = true;
};

const refusalItem = (refusal) => {
  const entry = find("#refused-words").content.firstElementChild.cloneNode(true);
  find("[data-message]", entry).textContent = refusal.message;
  find("[data-own-input]", entry).textContent = refusal.mine;
  find("[data-stored]", entry).textContent = refusal.stored;
  find("[data-stored-line]", entry).hidden = !refusal.stored;
  find("[data-open]", entry).href = refusal.page;
  find("[data-open]", entry).hidden = !refusal.page;
  find("[data-dismiss]", entry).addEventListener("click", () => dismiss(refusal));
  return entry;
};

const drawRefusals = () => {
  const list = find("#refused");
  list.replaceChildren(...refusals().map(refusalItem));
  if (refusals().length) box().hidden = false;
};

export const start = () => {
  document.addEventListener("outbox", draw);
  document.addEventListener("click", (event) => { if (event.target.closest("#unsent-again")) outbox.retry(); });
  draw();
};
