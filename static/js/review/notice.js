// What waits here and what was not taken: said calmly, until it is settled.

import { LOST, SIGNED_OUT, SOMEONE_ELSE } from "./asking.js";
import { counted, desk, one, show, tab } from "./page.js";
import * as outbox from "./outbox.js";
import { add, nameOf, read, remove } from "./storage.js";

const ALL_SENT_FOR = 8000;

let waited = 0;
let timer = 0;
let count = 0;

const box = () => one("#unsent");
const say = (words) => {
  const line = one("#unsent-words");
  if (line.textContent !== words) line.textContent = words;
};

const waitingInWords = () => {
  const steps = outbox.steps().length;
  const drafts = outbox.items().length - steps;
  return [steps && counted(steps, "step"), drafts && counted(drafts, "draft")].filter(Boolean).join(" and ");
};

const REASONS = {
  [LOST]: (what) => `No connection: ${what} kept in this browser, sent as soon as it is back. You can go on.`,
  [SIGNED_OUT]: (what) => `You are signed out: ${what} kept in this browser until you sign in again.`,
  [SOMEONE_ELSE]: (what) => `Somebody else is signed in here now: ${what} of yours not sent.`,
};

const allSent = () => {
  say(`The connection is back: ${counted(waited, "change")} sent.`);
  waited = 0;
  clearTimeout(timer);
  timer = setTimeout(() => { box().hidden = !refusals().length; say(""); }, ALL_SENT_FOR);
};

export const draw = () => {
  const trouble = outbox.items().length ? outbox.troubled() : "";
  if (trouble) {
    clearTimeout(timer);
    waited = Math.max(waited, outbox.items().length);
    box().hidden = false;
    say(REASONS[trouble](waitingInWords()));
  } else if (waited && !outbox.items().length) {
    allSent();
  }
  box().dataset.trouble = trouble;
  one("#unsent-again").hidden = trouble !== LOST;
  one("#unsent-sign-in").hidden = trouble !== SIGNED_OUT;
  drawRefusals();
};

// ---- what the server did not take, though the person had gone on

const name = () => nameOf("refused", desk().person, desk().evaluation);

// One notice for a comparison is enough: a newer draft or a save holds all that a draft of the same page could say.
const isReplacedBy = (refusal) => (other) =>
  other.kind === outbox.DRAFT
  && other.id !== refusal.id
  && other.comparison === refusal.comparison
  && other.tab === refusal.tab
  && (refusal.saves || (refusal.kind === outbox.DRAFT && refusal.at > other.at));

// Pages see each other's storage late: a page may refuse a save before it sees that another refused its draft.
const refusals = () => {
  const all = read(name());
  return all.filter((refusal) => !all.some((other) => isReplacedBy(other)(refusal)));
};

export const refuse = (refusal) => {
  add(name(), `${tab} ${(count += 1)}`, refusal);
  draw();
  show(box());
};

const dismiss = (refusal) => {
  for (const one of [refusal, ...read(name()).filter(isReplacedBy(refusal))]) remove(name(), one.id);
  draw();
  if (!refusals().length && !outbox.troubled()) box().hidden = true;
};

const line = (refusal) => {
  const entry = one("#refused-words").content.firstElementChild.cloneNode(true);
  one("[data-message]", entry).textContent = refusal.message;
  one("[data-mine]", entry).textContent = refusal.mine;
  one("[data-stored]", entry).textContent = refusal.stored;
  one("[data-stored-line]", entry).hidden = !refusal.stored;
  one("[data-open]", entry).href = refusal.page;
  one("[data-open]", entry).hidden = !refusal.page;
  one("[data-dismiss]", entry).addEventListener("click", () => dismiss(refusal));
  return entry;
};

const drawRefusals = () => {
  const list = one("#refused");
  list.replaceChildren(...refusals().map(line));
  if (refusals().length) box().hidden = false;
};

export const start = () => {
  document.addEventListener("outbox", draw);
  document.addEventListener("click", (event) => { if (event.target.closest("#unsent-again")) outbox.again(); });
  draw();
};
