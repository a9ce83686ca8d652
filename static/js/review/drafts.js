// Saves input as a draft on the server while it is entered, and in this browser until the server has it.

import { DONE, LOST, REFUSED, SIGNED_OUT, errorMessage } from "./requests.js";
import { comparison, find, isSingle, rubric, tab, version } from "./page.js";
import * as outbox from "./outbox.js";
import { activeMilliseconds } from "./time_on_task.js";

const SAVE_DELAY_MS = 400; // after the last change
const HIDDEN_FIELDS = new Set(["csrfmiddlewaretoken", "version", "rubric", "tab", "active_ms", "then"]);

let timer = 0;
let draftTab = tab; // the tab that entered the draft shown at first
const editedForms = new WeakSet(); // forms with input

const form = () => find("#choices");
const draftStatus = () => find("#draft");

export const fields = () => [...new FormData(form())].filter(([name, value]) => !HIDDEN_FIELDS.has(name) && value !== "");

// ---- fields and their description

export const fill = (values) => {
  for (const control of form().elements) {
    if (!control.name || HIDDEN_FIELDS.has(control.name) || control.type === "hidden") continue;
    const value = values[control.name] ?? "";
    if (control.type === "radio") control.checked = control.value === value;
    else if (control.type !== "submit") control.value = value;
  }
  if (values.note && find("#note")) find("#note").open = true;
};

const describeField = (name, value) => {
  const isMatch = (field) => field.name === name && (field.type !== "radio" || field.value === value);
  const control = [...(form()?.elements ?? [])].find(isMatch);
  const aspect = control?.closest(".aspect")?.dataset.name;
  const side = isSingle() ? "" : { left: " of A", right: " of B" }[control?.dataset.side] ?? "";
  const label = control?.type === "radio"
    ? control.nextElementSibling?.textContent.trim()
    : [...(control?.options ?? [])].find((option) => option.value === value)?.text;
  const isWritten = !label && isNaN(value);
  return `${aspect ?? "Note"}${aspect && isWritten ? " (note)" : ""}${side} ${isWritten ? `“${value}”` : label || value}`;
};

export const describe = (values) => values.map(([name, value]) => describeField(name, value)).join(", ") || "nothing";

// ---- saving

export const send = () => {
  clearTimeout(timer);
  timer = 0;
  if (!draftStatus()) return;
  const item = {
    kind: outbox.DRAFT,
    comparison: comparison(),
    address: draftStatus().dataset.address,
    panel: draftStatus().dataset.address,
    words: describe(fields()),
    number: draftStatus().dataset.number,
    fields: [...fields(), ["version", version()], ["rubric", rubric()], ["active_ms", activeMilliseconds()]],
  };
  outbox.put(item).then((response) => receive(item, response));
};

// A save contains everything a draft would.
export const cancel = () => {
  clearTimeout(timer);
  timer = 0;
};

// Call before a step that does not save the choices.
export const sendNow = () => timer && send();

// Another tab may have entered the draft and this one sent it.
export const isFromThisTab = (item) => [undefined, tab, draftTab].includes(item.tab);

const isShown = (item) =>
  draftStatus()
  && isFromThisTab(item)
  && comparison() === item.comparison
  && item.fields.some(([name, value]) => name === "version" && value === version());

// Called when a draft is refused after its comparison left the page.
let hiddenRefusal = () => {};
export const onHiddenRefusal = (handler) => { hiddenRefusal = handler; };

export const receive = (item, response) => {
  if (!isShown(item)) return response.kind === REFUSED && !outbox.isSaving(item.comparison) && hiddenRefusal(item, response);
  if (response.kind === DONE) showSaved(JSON.parse(response.text));
  else if (response.kind === LOST || response.kind === SIGNED_OUT) draftStatus().textContent = "Draft kept in this browser";
  else if (response.kind === REFUSED) refuse(response);
  return undefined;
};

const showSaved = (draft) => {
  draftStatus().dataset.number = draft.number;
  draftStatus().textContent = `Draft saved ${draft.at}`;
};

const refuse = (response) => {
  if (response.status === 409) return showConflict(JSON.parse(response.text));
  draftStatus().textContent = errorMessage(response);
};

// ---- another tab saved a different draft

const showConflict = (serverDraft) => {
  find("#conflict")?.remove();
  const box = find("#conflict-words").content.firstElementChild.cloneNode(true);
  box.id = "conflict";
  find("[data-message]", box).textContent = `${serverDraft.message} Saved ${serverDraft.at}.`;
  find("[data-other-draft]", box).textContent = describe(Object.entries(serverDraft.fields));
  find("[data-own-input]", box).textContent = describe(fields());
  find("[data-use-other]", box).addEventListener("click", () => {
    fill(serverDraft.fields);
    closeConflict(serverDraft, box);
    showSaved(serverDraft);
  });
  find("[data-keep-own]", box).addEventListener("click", () => {
    closeConflict(serverDraft, box);
    send();
  });
  form().querySelector(".panel-body").prepend(box);
};

const closeConflict = (serverDraft, box) => {
  draftStatus().dataset.number = serverDraft.number;
  box.remove();
};

// ---- events

const handleInput = (event) => {
  const isField = event.target.form === form() && event.target.name && !HIDDEN_FIELDS.has(event.target.name);
  if (!isField) return;
  editedForms.add(form());
  if (!draftStatus()) return;
  clearTimeout(timer);
  timer = setTimeout(send, SAVE_DELAY_MS);
};

export const isEdited = () => editedForms.has(form());

// Fills in the input and the time of an earlier page that could not send them.
export const restoreUnsent = () => {
  const unsent = draftStatus() && outbox.draftFor(comparison());
  draftTab = unsent ? unsent.tab : tab;
  if (!unsent) return;
  const values = Object.fromEntries(unsent.fields);
  fill(values);
  const time = find("#choices [name=active_ms]");
  time.value = Math.max(time.value, values.active_ms);
  draftStatus().textContent = "Draft kept in this browser";
};

export const start = () => {
  document.addEventListener("input", handleInput);
  document.addEventListener("change", handleInput);
  addEventListener("pagehide", sendNow);
};
