// Save, confirm, skip, undo: each goes through the outbox, and the next comparison need not wait for it.

import { DONE, LOST, REFUSED, get, wordsOf } from "./asking.js";
import * as ahead from "./ahead.js";
import * as drafts from "./drafts.js";
import * as notice from "./notice.js";
import { comparison, one, panel, parsed, rubric, say, stage, tab } from "./page.js";
import * as outbox from "./outbox.js";
import { spent } from "./time.js";

const LEFT_OUT = new Set(["csrfmiddlewaretoken", "tab", "active_ms", "then"]);
const NOT_YET = "Your last step is not sent yet: it can be undone when it is.";

let busy = false;
let catchingUp = Promise.resolve(); // until the last step is stored, and the page knows it
let behind = 0;
export const isBusy = () => busy;

// ---- on its way

const saves = (form) => form.matches("#choices, #apply");
const kindOf = (form) => form.id || "skip";
const isStep = (form) => form.matches("#choices, #skip form, #undo, #again, #apply");

const itemOf = (form, then) => ({
  kind: outbox.STEP,
  saves: saves(form),
  comparison: comparison(),
  page: location.pathname,
  address: form.getAttribute("action"),
  panel: one("#panel").dataset.draft,
  words: form.id === "choices" ? drafts.inWords(drafts.fields()) : kindOf(form),
  fields: [
    ...[...new FormData(form)].filter(([name]) => !LEFT_OUT.has(name)),
    ["active_ms", spent()],
    ...(then ? [["then", then]] : []),
  ],
});

const leadsOn = (form) => kindOf(form) === "skip" || form.id === "choices";
// Nothing is revealed to the person by this step: they need not see what the server answers.
const isSure = (form) => kindOf(form) === "skip" || panel().dataset.afterSave === "next";

const submitted = (event) => {
  const form = event.target;
  if (!isStep(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (busy) return;
  if (form.id === "undo" && behind) onceCaughtUp(() => one("#undo")?.requestSubmit());
  else if (form.id === "undo" && outbox.steps().length) say(NOT_YET);
  else take(form, event.submitter?.value || (form.id === "choices" ? "next" : ""));
};

const take = async (form, then) => {
  const next = leadsOn(form) ? ahead.ready() : null;
  const item = itemOf(form, next ? "ahead" : then);
  if (saves(form)) drafts.forget();
  else drafts.sendNow();
  if (next && isSure(form)) {
    const asked = outbox.put(item);
    ahead.open(next);
    return catchUp(asked.then((answer) => afterwards(item, answer)));
  }
  busy = true;
  const answer = await outbox.put(item);
  busy = false;
  return comparison() === item.comparison ? answered(item, answer, next) : afterwards(item, answer);
};

// ---- the answer, where the person waited for it

const answered = (item, answer, next) => {
  if (answer.kind === DONE || answer.kind === REFUSED) return takeIn(item, answer, next);
  if (answer.kind === outbox.ELSEWHERE) return location.reload();
  if (answer.kind === LOST && next) return ahead.open(next);
  return say("Kept in this browser for now.");
};

const catchUp = (stored) => {
  behind += 1;
  catchingUp = stored.finally(() => {
    behind -= 1;
  });
  return catchingUp;
};

// Undo and the way back speak of the last step, also where they are pressed before it is stored.
export const onceCaughtUp = async (act) => {
  const shown = comparison();
  if (behind && document.activeElement?.closest(".others")) document.activeElement.blur(); // else they stay as they were
  await catchingUp;
  if (outbox.steps().length) say(NOT_YET);
  else if (comparison() === shown && !busy) act();
};

const takeIn = (item, answer, next) => {
  if (answer.status === 204 && next) {
    ahead.open(next);
    return catchUp(refresh());
  }
  if (answer.leads) return location.assign(answer.leads);
  if (answer.status === 204) return location.assign(item.page);
  if (answer.kind === REFUSED && !answer.headers.get("HX-Retarget")) return refuse(item, answer);
  return putIn(answer, answer.headers.get("HX-Retarget") ?? (parsed(answer.text).querySelector("#workbench") ? "#workbench" : "#panel"));
};

const putIn = (answer, target) => {
  const address = answer.headers.get("HX-Push-Url");
  if (address && address !== location.pathname) {
    history.replaceState({ htmx: true }, "", location.href);
    history.pushState({ htmx: true }, "", address);
  }
  htmx.swap(target, answer.text, { swapStyle: "outerHTML" });
  if (target === "#workbench") scrollTo(0, 0);
};

// ---- the answer, where the person has gone on

const afterwards = (item, answer) => {
  if (item.kind === outbox.DRAFT) return drafts.receive(item, answer);
  if (answer.kind === REFUSED) {
    refuse(item, answer);
    return refresh();
  }
  if (answer.kind !== DONE) return undefined;
  if (answer.leads) return location.assign(answer.leads);
  // The person has come back to it, or it was sent for another page. What was entered here since then stays.
  const isOutdated = comparison() === item.comparison && (drafts.isFromHere(item) || !drafts.isEntered());
  if (isOutdated) return takeIn(item, answer, null);
  return refresh();
};

const refuse = (item, answer) => {
  const mayReturn = ![403, 404].includes(answer.status);
  notice.refuse({
    kind: item.kind,
    saves: item.saves,
    comparison: item.comparison,
    tab: item.tab ?? tab,
    message: wordsOf(answer),
    stored: storedIn(answer),
    mine: item.words,
    page: mayReturn ? item.page ?? item.panel.replace(/\/draft$/, "") : "",
  });
};

const storedIn = (answer) => {
  if (answer.headers.get("Content-Type")?.includes("json")) {
    const { fields } = JSON.parse(answer.text);
    return fields ? drafts.inWords(Object.entries(fields)) : "";
  }
  const rows = [...parsed(answer.text).querySelectorAll("#versions tbody tr")];
  return rows.map((row) => `${row.cells[0].textContent} ${row.cells[1].textContent}`).join(", ");
};

// The next comparison was made before the last step was stored: its progress, its undo and its way back are behind.
const refresh = async () => {
  if (outbox.steps().length || !panel()) return ahead.prepare();
  const shown = comparison();
  const answer = await get(panel().dataset.draft);
  ahead.prepare();
  if (answer.kind !== DONE || comparison() !== shown) return undefined;
  const fresh = parsed(answer.text);
  if (rubric() && rubric(fresh) && rubric(fresh) !== rubric()) return askAnew(answer);
  for (const part of [".progressing", ".others"]) replace(part, fresh);
  return undefined;
};

// The rubric was changed while this page was open: its new questions, with what was entered so far.
const askAnew = (answer) => {
  const given = Object.fromEntries(drafts.fields());
  ahead.forget();
  putIn(answer, "#panel");
  drafts.fill(given);
};

const replace = (part, fresh) => {
  const [old, now] = [one(part, panel()), one(`#panel ${part}`, fresh)];
  const isInUse = !old || !now || old.contains(document.activeElement) || one("details[open]", old);
  if (isInUse || fresh.querySelector("#panel").dataset.stage !== stage()) return;
  old.replaceWith(document.adoptNode(now));
  htmx.process(one(part, panel()));
};

// Going back asks for a page that is to know of the last step: not before that is stored.
const wentBack = (event) => {
  if (!behind) return;
  event.preventDefault();
  const { path, xhr } = event.detail;
  catchingUp.then(() => location.pathname + location.search === path && xhr.send());
};

// ---- what begins them

const opened = (event) => {
  if (behind && event.target.closest("#earlier")) {
    event.preventDefault();
    onceCaughtUp(() => one("#earlier")?.click());
    return;
  }
  const link = event.target.closest("#next");
  const next = link && ahead.ready();
  if (!next || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  ahead.open(next);
};

export const start = () => {
  document.addEventListener("submit", submitted, true);
  document.addEventListener("click", opened, true);
  document.addEventListener("htmx:historyCacheMiss", wentBack);
  outbox.whenLate(afterwards);
  drafts.whenGone(refuse);
};
