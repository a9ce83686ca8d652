// What is entered is kept on the server as it is entered, and in this browser until it is there.

import { DONE, LOST, REFUSED, SIGNED_OUT, wordsOf } from "./asking.js";
import { comparison, one, rubric, tab, version } from "./page.js";
import * as outbox from "./outbox.js";
import { spent } from "./time.js";

const PAUSE = 400; // milliseconds without a change
const OWN = new Set(["csrfmiddlewaretoken", "version", "rubric", "tab", "active_ms", "then"]);

let timer = 0;
let adopted = tab; // the page that entered the draft which this page began with
const touched = new WeakSet(); // forms in which something was entered

const form = () => one("#choices");
const note = () => one("#draft");

export const fields = () => [...new FormData(form())].filter(([name, value]) => !OWN.has(name) && value !== "");

// ---- into the fields, and into words

export const fill = (given) => {
  for (const control of form().elements) {
    if (!control.name || OWN.has(control.name) || control.type === "hidden") continue;
    const value = given[control.name] ?? "";
    if (control.type === "radio") control.checked = control.value === value;
    else if (control.type !== "submit") control.value = value;
  }
  if (given.note && one("#note")) one("#note").open = true;
};

const labelled = (name, value) => {
  const control = [...(form()?.elements ?? [])].find((one) => one.name === name && (one.type !== "radio" || one.value === value));
  const aspect = control?.closest(".aspect")?.dataset.name;
  const side = { left: " of A", right: " of B" }[control?.dataset.side] ?? "";
  const words = control?.type === "radio"
    ? control.nextElementSibling?.textContent.trim()
    : [...(control?.options ?? [])].find((option) => option.value === value)?.text;
  const isWritten = !words && isNaN(value);
  return `${aspect ?? "Note"}${aspect && isWritten ? " (note)" : ""}${side} ${isWritten ? `“${value}”` : words || value}`;
};

export const inWords = (given) => given.map(([name, value]) => labelled(name, value)).join(", ") || "nothing";

// ---- keeping

export const send = () => {
  clearTimeout(timer);
  timer = 0;
  if (!note()) return;
  const item = {
    kind: outbox.DRAFT,
    comparison: comparison(),
    address: note().dataset.address,
    panel: note().dataset.address,
    words: inWords(fields()),
    number: note().dataset.number,
    fields: [...fields(), ["version", version()], ["rubric", rubric()], ["active_ms", spent()]],
  };
  outbox.put(item).then((answer) => receive(item, answer));
};

// Saving holds all that a draft could say.
export const forget = () => {
  clearTimeout(timer);
  timer = 0;
};

// Before a step that does not.
export const sendNow = () => timer && send();

// Another page of this browser may have entered it, and this one sent it.
export const isFromHere = (item) => [undefined, tab, adopted].includes(item.tab);

const isShown = (item) =>
  note()
  && isFromHere(item)
  && comparison() === item.comparison
  && item.fields.some(([name, value]) => name === "version" && value === version());

// Who says that a draft was refused whose comparison is not shown any more.
let gone = () => {};
export const whenGone = (taker) => { gone = taker; };

export const receive = (item, answer) => {
  if (!isShown(item)) return answer.kind === REFUSED && !outbox.isSaving(item.comparison) && gone(item, answer);
  if (answer.kind === DONE) take(JSON.parse(answer.text));
  else if (answer.kind === LOST || answer.kind === SIGNED_OUT) note().textContent = "Draft, kept in this browser for now";
  else if (answer.kind === REFUSED) refuse(answer);
  return undefined;
};

const take = (kept) => {
  note().dataset.number = kept.number;
  note().textContent = `Draft, saved ${kept.at}`;
};

const refuse = (answer) => {
  if (answer.status === 409) return disagree(JSON.parse(answer.text));
  note().textContent = wordsOf(answer);
};

// ---- another page kept something else

const disagree = (theirs) => {
  one("#conflict")?.remove();
  const box = one("#conflict-words").content.firstElementChild.cloneNode(true);
  box.id = "conflict";
  one("[data-message]", box).textContent = `${theirs.message} It was kept at ${theirs.at}.`;
  one("[data-theirs]", box).textContent = inWords(Object.entries(theirs.fields));
  one("[data-mine]", box).textContent = inWords(fields());
  one("[data-use]", box).addEventListener("click", () => {
    fill(theirs.fields);
    settle(theirs, box);
    take(theirs);
  });
  one("[data-keep]", box).addEventListener("click", () => {
    settle(theirs, box);
    send();
  });
  form().querySelector(".choosing").prepend(box);
};

const settle = (theirs, box) => {
  note().dataset.number = theirs.number;
  box.remove();
};

// ---- what begins it

const entered = (event) => {
  const isField = event.target.form === form() && event.target.name && !OWN.has(event.target.name);
  if (!isField) return;
  touched.add(form());
  if (!note()) return;
  clearTimeout(timer);
  timer = setTimeout(send, PAUSE);
};

export const isEntered = () => touched.has(form());

// What a page before this one entered and could not send stands in its fields again, its time among them.
export const begin = () => {
  const unsent = note() && outbox.draftFor(comparison());
  adopted = unsent ? unsent.tab : tab;
  if (!unsent) return;
  const given = Object.fromEntries(unsent.fields);
  fill(given);
  const time = one("#choices [name=active_ms]");
  time.value = Math.max(time.value, given.active_ms);
  note().textContent = "Draft, kept in this browser for now";
};

export const start = () => {
  document.addEventListener("input", entered);
  document.addEventListener("change", entered);
  addEventListener("pagehide", sendNow);
};
