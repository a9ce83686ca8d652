// Save, confirm, skip and undo go through the outbox, so that the next comparison need not wait for them.

import { DONE, LOST, REFUSED, errorMessage, get } from "./requests.js";
import * as prefetch from "./prefetch.js";
import * as drafts from "./drafts.js";
import * as notice from "./notice.js";
import { announce, comparison, find, panel, parseHtml, rubric, stage, tab } from "./page.js";
import * as outbox from "./outbox.js";
import { activeMilliseconds } from "./time_on_task.js";

const EXCLUDED_FIELDS = new Set(["csrfmiddlewaretoken", "tab", "active_ms", "then"]);
const NOT_SENT_MESSAGE = "Your last step is not sent yet. You can undo it once it is.";

let busy = false;
let lastSync = Promise.resolve(); // resolves when the last step is stored and the panel shows it
let pendingSyncs = 0;
export const isBusy = () => busy;

// ---- sending

const savesReview = (form) => form.matches("#choices, #apply");
const kindOf = (form) => form.id || "skip";
const isStep = (form) => form.matches("#choices, #skip form, #undo, #again, #apply");

const itemOf = (form, then) => ({
  kind: outbox.STEP,
  saves: savesReview(form),
  comparison: comparison(),
  page: location.pathname,
  address: form.getAttribute("action"),
  panel: find("#panel").dataset.draft,
  words: form.id === "choices" ? drafts.describe(drafts.fields()) : kindOf(form),
  fields: [
    ...[...new FormData(form)].filter(([name]) => !EXCLUDED_FIELDS.has(name)),
    ["active_ms", activeMilliseconds()],
    ...(then ? [["then", then]] : []),
  ],
});

const opensNext = (form) => kindOf(form) === "skip" || form.id === "choices";
// The reviewer need not see the response to a step that reveals nothing.
const revealsNothing = (form) => kindOf(form) === "skip" || panel().dataset.afterSave === "next";

const handleSubmit = (event) => {
  const form = event.target;
  if (!isStep(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (busy) return;
  if (form.id === "undo" && pendingSyncs) afterSync(() => find("#undo")?.requestSubmit());
  else if (form.id === "undo" && outbox.steps().length) announce(NOT_SENT_MESSAGE);
  else submitStep(form, event.submitter?.value || (form.id === "choices" ? "next" : ""));
};

const submitStep = async (form, then) => {
  const next = opensNext(form) ? prefetch.ready() : null;
  const item = itemOf(form, next ? "ahead" : then);
  if (savesReview(form)) drafts.cancel();
  else drafts.sendNow();
  if (next && revealsNothing(form)) {
    const sent = outbox.put(item);
    prefetch.open(next);
    return trackSync(sent.then((response) => handleLateResponse(item, response)));
  }
  busy = true;
  const response = await outbox.put(item);
  busy = false;
  return comparison() === item.comparison ? handleResponse(item, response, next) : handleLateResponse(item, response);
};

// ---- the response while its comparison is shown

const handleResponse = (item, response, next) => {
  if (response.kind === DONE || response.kind === REFUSED) return applyResponse(item, response, next);
  if (response.kind === outbox.ELSEWHERE) return location.reload();
  if (response.kind === LOST && next) return prefetch.open(next);
  return announce("Kept in this browser.");
};

const trackSync = (stored) => {
  pendingSyncs += 1;
  lastSync = stored.finally(() => {
    pendingSyncs -= 1;
  });
  return lastSync;
};

// Undo and Previous refer to the last step, even if it is not stored yet.
export const afterSync = async (action) => {
  const current = comparison();
  // Focus among these links would keep replacePart from updating them.
  if (pendingSyncs && document.activeElement?.closest(".panel-links")) document.activeElement.blur();
  await lastSync;
  if (outbox.steps().length) announce(NOT_SENT_MESSAGE);
  else if (comparison() === current && !busy) action();
};

const applyResponse = (item, response, next) => {
  if (response.status === 204 && next) {
    prefetch.open(next);
    return trackSync(refreshPanel());
  }
  if (response.redirect) return location.assign(response.redirect);
  if (response.status === 204) return location.assign(item.page);
  if (response.kind === REFUSED && !response.headers.get("HX-Retarget")) return reportRefusal(item, response);
  return swapIn(response, response.headers.get("HX-Retarget") ?? (parseHtml(response.text).querySelector("#comparison") ? "#comparison" : "#panel"));
};

const swapIn = (response, target) => {
  const address = response.headers.get("HX-Push-Url");
  if (address && address !== location.pathname) {
    history.replaceState({ htmx: true }, "", location.href);
    history.pushState({ htmx: true }, "", address);
  }
  htmx.swap(target, response.text, { swapStyle: "outerHTML" });
  if (target === "#comparison") scrollTo(0, 0);
};

// ---- the response after another comparison is shown

const handleLateResponse = (item, response) => {
  if (item.kind === outbox.DRAFT) return drafts.receive(item, response);
  if (response.kind === REFUSED) {
    reportRefusal(item, response);
    return refreshPanel();
  }
  if (response.kind !== DONE) return undefined;
  if (response.redirect) return location.assign(response.redirect);
  // The comparison is shown again, or another tab sent the step. Input entered since then stays.
  const isOutdated = comparison() === item.comparison && (drafts.isFromThisTab(item) || !drafts.isEdited());
  if (isOutdated) return applyResponse(item, response, null);
  return refreshPanel();
};

const reportRefusal = (item, response) => {
  const mayReturn = ![403, 404].includes(response.status);
  notice.refuse({
    kind: item.kind,
    saves: item.saves,
    comparison: item.comparison,
    tab: item.tab ?? tab,
    message: errorMessage(response),
    stored: describeStored(response),
    mine: item.words,
    page: mayReturn ? item.page ?? item.panel.replace(/\/draft$/, "") : "",
  });
};

const describeStored = (response) => {
  if (response.headers.get("Content-Type")?.includes("json")) {
    const { fields } = JSON.parse(response.text);
    return fields ? drafts.describe(Object.entries(fields)) : "";
  }
  const rows = [...parseHtml(response.text).querySelectorAll("#versions tbody tr")];
  return rows.map((row) => `${row.cells[0].textContent} ${row.cells[1].textContent}`).join(", ");
};

// A prefetched page was rendered before the last step was stored, so its progress and its links are out of date.
const refreshPanel = async () => {
  if (outbox.steps().length || !panel()) return prefetch.schedule();
  const current = comparison();
  const response = await get(panel().dataset.draft);
  prefetch.schedule();
  if (response.kind !== DONE || comparison() !== current) return undefined;
  const fresh = parseHtml(response.text);
  if (rubric() && rubric(fresh) && rubric(fresh) !== rubric()) return showNewRubric(response);
  for (const part of [".panel-progress", ".panel-links"]) replacePart(part, fresh);
  return undefined;
};

// The rubric changed while this page was open: show its new aspects with the input so far.
const showNewRubric = (response) => {
  const values = Object.fromEntries(drafts.fields());
  prefetch.discard();
  swapIn(response, "#panel");
  drafts.fill(values);
};

const replacePart = (part, fresh) => {
  const [old, updated] = [find(part, panel()), find(`#panel ${part}`, fresh)];
  const isInUse = !old || !updated || old.contains(document.activeElement) || find("details[open]", old);
  if (isInUse || fresh.querySelector("#panel").dataset.stage !== stage()) return;
  old.replaceWith(document.adoptNode(updated));
  htmx.process(find(part, panel()));
};

// Back in history must load a page that has the last step, so it waits until that is stored.
const delayHistoryRequest = (event) => {
  if (!pendingSyncs) return;
  event.preventDefault();
  const { path, xhr } = event.detail;
  lastSync.then(() => location.pathname + location.search === path && xhr.send());
};

// ---- events

const handleClick = (event) => {
  if (pendingSyncs && event.target.closest("#earlier")) {
    event.preventDefault();
    afterSync(() => find("#earlier")?.click());
    return;
  }
  const link = event.target.closest("#next");
  const next = link && prefetch.ready();
  if (!next || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  prefetch.open(next);
};

export const start = () => {
  document.addEventListener("submit", handleSubmit, true);
  document.addEventListener("click", handleClick, true);
  document.addEventListener("htmx:historyCacheMiss", delayHistoryRequest);
  outbox.onLateResponse(handleLateResponse);
  drafts.onHiddenRefusal(reportRefusal);
};
