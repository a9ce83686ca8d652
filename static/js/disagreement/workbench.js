// Keys that resolve a disagreement: choose for the current aspect, save, go on. Off while someone types.

import { areSingleKeysOn, isTyping } from "../shortcuts.js";

const find = (selector) => document.querySelector(selector);
const form = find("#resolve");
const withAlt = !areSingleKeysOn();
const aspects = form ? [...form.querySelectorAll(".aspect")] : [];
const progress = find("#progress");

const isAnswered = (aspect) => Boolean(aspect.querySelector(":checked"));
const needsChoice = (aspect) => aspect.querySelector("[type=radio]") && !isAnswered(aspect);
const current = () => aspects.find((aspect) => aspect.matches("[data-current]"));

const announce = (message) => {
  progress.setAttribute("role", "status");
  progress.textContent = message;
};

// ---- choosing

const markCurrent = (aspect) => {
  for (const other of aspects) other.toggleAttribute("data-current", other === aspect);
};

const focusAspect = (aspect) => {
  if (!aspect) return;
  markCurrent(aspect);
  aspect.focus({ preventScroll: true });
  aspect.scrollIntoView({ block: "nearest" });
};

const moveBy = (by) => {
  focusAspect(aspects[Math.min(Math.max(aspects.indexOf(current()) + by, 0), aspects.length - 1)]);
};

const check = (aspect, value) => {
  const radio = aspect?.querySelector(`input[value="${value}"]`);
  if (!radio) return false;
  radio.checked = true;
  aspect.removeAttribute("data-proposed");
  return true;
};

const choose = (value) => check(current(), value) && moveBy(1);

// The current aspect, and all others that have no choice yet.
const chooseRemaining = (value) => {
  const remaining = aspects.filter((aspect) => aspect === current() || needsChoice(aspect));
  for (const aspect of remaining) check(aspect, value);
};

// ---- saving and moving

let leavesOpen = false; // whether Enter was pressed over an aspect without a choice

const save = () => {
  const missing = aspects.find(needsChoice);
  if (missing && !leavesOpen) {
    leavesOpen = aspects.some(isAnswered);
    focusAspect(missing);
    announce(`${missing.dataset.name} has no choice.${leavesOpen ? " Press Enter again to leave it open." : ""}`);
    return;
  }
  if (form) form.requestSubmit(find("[data-primary]"));
  else find("#following")?.click();
};

const CHOICES = { a: "A", ArrowLeft: "A", t: "tie", b: "B", ArrowRight: "B", x: "both_bad" };
const next = () => find("#following")?.click();
const previous = () => find("#previous")?.click();
const ACTIONS = {
  Enter: save,
  ArrowDown: () => moveBy(1),
  ArrowUp: () => moveBy(-1),
  j: next,
  n: next,
  s: next,
  k: previous,
  p: previous,
  r: () => form?.querySelector(".chips :checked")?.focus(),
  u: () => find("main > .notice form button")?.click(),
};

// ---- from event to action

const isControl = (target) => target.closest("button, a, summary");
const isLetter = (key) => key.length === 1;

const actionFor = (key, shift) => {
  const letter = isLetter(key) ? key.toLowerCase() : key;
  if (shift) return isLetter(key) && CHOICES[letter] && (() => chooseRemaining(CHOICES[letter]));
  if (aspects.length && CHOICES[letter]) return () => choose(CHOICES[letter]);
  if (/^[1-9]$/.test(key)) return aspects[key - 1] && (() => focusAspect(aspects[key - 1]));
  return ACTIONS[letter];
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.defaultPrevented || event.isComposing || find("dialog[open]")) return;
  if (isTyping(target) && !(withAlt && event.altKey && isLetter(key))) return;
  if (event.altKey !== (withAlt && isLetter(key))) return;
  if (key === "Enter" && (isControl(target) || event.repeat)) return;
  if (key.startsWith("Arrow") && (target.closest(".chips") || target.closest(".texts"))) return;
  const action = actionFor(key, event.shiftKey);
  if (!action) return;
  event.preventDefault();
  action();
});

form?.addEventListener("change", ({ target }) => target.closest(".aspect")?.removeAttribute("data-proposed"));
form?.addEventListener("focusin", ({ target }) => target.closest(".aspect") && markCurrent(target.closest(".aspect")));

const first = aspects.find(needsChoice) ?? aspects[0];
if (first && !location.hash) {
  markCurrent(first);
  first.focus({ preventScroll: true });
  if (matchMedia("(min-width: 62rem)").matches) first.scrollIntoView({ block: "nearest" });
}
