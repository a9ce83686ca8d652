// The current aspect and the choices made on it by key.

import { WIDE_SCREEN, announce, find, isSingle, panel, pluralize, scrollIntoView, stage } from "./page.js";
import { preference } from "./preferences.js";
import { isReveal } from "./reveal.js";

export const aspects = () => [...document.querySelectorAll("#choices .aspect")];
export const current = () => find("#choices .aspect[data-current]") ?? aspects()[0];

const markCurrent = (aspect) => {
  for (const other of aspects()) other.toggleAttribute("data-current", other === aspect);
};

export const focusAspect = (aspect, focus = true) => {
  if (!aspect) return;
  markCurrent(aspect);
  if (focus) aspect.focus({ preventScroll: true });
};

export const moveBy = (by) => {
  const all = aspects();
  focusAspect(all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)]);
  scrollIntoView(current());
};

export const focusAspectNumber = (number) => {
  focusAspect(aspects()[number - 1]);
  scrollIntoView(current());
};

const announceChoice = (control) => {
  const { name } = control.closest(".aspect").dataset;
  announce(`${name}${control.dataset.side && !isSingle() ? `, ${sideLetter(control.dataset.side)}` : ""}: ${labelOf(control)}`);
};

const labelOf = (control) => control.nextElementSibling?.textContent.trim() || control.value;
const sideLetter = (side) => (side === "left" ? "A" : "B");

const check = (radio) => {
  radio.checked = true;
  radio.dispatchEvent(new Event("change", { bubbles: true }));
  announceChoice(radio);
};

export const choose = (value) => {
  const radio = current()?.querySelector(`input[value="${value}"]:not([data-side])`);
  if (!radio) return;
  check(radio);
  moveBy(1);
  if (savesAtOnce()) find("#choices").requestSubmit(find("[data-primary]"));
};

// With one aspect alone, one key can do: the reviewer turns this on.
const savesAtOnce = () => stage() === "choose" && aspects().length === 1 && preference("instant");

// The same choice on every aspect that has none yet.
export const chooseRemaining = (value) => {
  const remaining = aspects().filter((aspect) => !isAnswered(aspect));
  const radios = remaining.map((aspect) => aspect.querySelector(`input[value="${value}"]:not([data-side])`)).filter(Boolean);
  for (const radio of radios) check(radio);
  if (radios.length) focusAspect(aspects().find((aspect) => !isAnswered(aspect)) ?? aspects().at(-1));
  announce(radios.length ? `${labelOf(radios[0])} for ${pluralize(radios.length, "remaining aspect")}` : "Every aspect has a choice.");
};

// ---- scales: one for each side

export const hasScales = () => Boolean(find("#choices [data-side]"));

let side = "left";

const markSide = () => panel()?.setAttribute("data-current-side", side);

export const selectSide = (chosenSide) => {
  if (isSingle()) return;
  side = chosenSide;
  markSide();
  announce(`${current()?.dataset.name}, ${sideLetter(side)}`);
};

const controlsOfSide = (aspect, which) => [...aspect.querySelectorAll(`[data-side="${which}"]`)];

// A digit scores A, then B, then the next aspect; a single response has no B.
export const score = (digit) => {
  const controls = controlsOfSide(current(), isSingle() ? "single" : side);
  const radio = controls.find((control) => control.type === "radio" && Number(control.value) === digit);
  if (!radio) return enterScore(controls.find((control) => control.type !== "radio"), digit);
  check(radio);
  if (side === "left" && !isSingle()) selectSide("right");
  else {
    side = "left";
    moveBy(1);
    markSide();
  }
};

// A scale with too many values is a number field, and the digit is its first character.
const enterScore = (field, digit) => {
  if (!field) return;
  field.focus();
  field.value = digit;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};

// ---- unanswered aspects

export const isAnswered = (aspect) => {
  const names = new Set([...aspect.querySelectorAll("input[required]")].map((control) => control.name));
  return [...names].every((name) => {
    const controls = [...aspect.querySelectorAll(`input[name="${CSS.escape(name)}"]`)];
    return controls.some((control) => (control.type === "radio" ? control.checked : control.value !== ""));
  });
};

// Focuses the first aspect that needs attention. The window does not scroll, except to the top of a reveal.
export const focusFirst = () => {
  const first = find("#choices .aspect.differs") ?? aspects().find((aspect) => !isAnswered(aspect)) ?? aspects()[0];
  side = "left";
  if (hasScales()) markSide();
  if (first) focusAspect(first);
  else (find("#next") ?? panel())?.focus({ preventScroll: true });
  if (find("#refusal")) scrollIntoView(find("#refusal"));
  else if (first && WIDE_SCREEN.matches) scrollIntoView(first);
  else if (isReveal()) panel().scrollIntoView({ block: "start" });
  const progress = stage() === "choose" ? find("#progress") : find("#agreement") ?? find("#progress");
  announce(progress?.textContent.replace(/\s+/g, " ").trim() ?? "");
};
