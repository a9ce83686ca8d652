// Which aspect the keys speak of, and choosing on it.

import { WIDE, one, panel, say, show, stage } from "./page.js";
import { isReveal } from "./reveal.js";

export const aspects = () => [...document.querySelectorAll("#choices .aspect")];
export const current = () => one("#choices .aspect[data-current]") ?? aspects()[0];

const mark = (aspect) => {
  for (const other of aspects()) other.toggleAttribute("data-current", other === aspect);
};

export const goTo = (aspect, focus = true) => {
  if (!aspect) return;
  mark(aspect);
  if (focus) aspect.focus({ preventScroll: true });
};

export const step = (by) => {
  const all = aspects();
  goTo(all[Math.min(Math.max(all.indexOf(current()) + by, 0), all.length - 1)]);
  show(current());
};

export const goToNumber = (number) => {
  goTo(aspects()[number - 1]);
  show(current());
};

const sayChosen = (control) => {
  const { name } = control.closest(".aspect").dataset;
  say(`${name}${control.dataset.side ? `, ${sideInWords(control.dataset.side)}` : ""}: ${labelOf(control)}`);
};

const labelOf = (control) => control.nextElementSibling?.textContent.trim() || control.value;
const sideInWords = (side) => (side === "left" ? "A" : "B");

const check = (radio) => {
  radio.checked = true;
  radio.dispatchEvent(new Event("change", { bubbles: true }));
  sayChosen(radio);
};

export const choose = (value) => {
  const radio = current()?.querySelector(`input[value="${value}"]:not([data-side])`);
  if (!radio) return;
  check(radio);
  step(1);
};

// ---- scales: one for each side

export const hasScales = () => Boolean(one("#choices [data-side]"));

let side = "left";

const markSide = () => panel()?.setAttribute("data-side-now", side);

export const takeSide = (taken) => {
  side = taken;
  markSide();
  say(`${current()?.dataset.name}, ${sideInWords(side)}`);
};

const onSide = (aspect, which) => [...aspect.querySelectorAll(`[data-side="${which}"]`)];

// A digit is a value of the scale, first of A, then of B, then of the next aspect's.
export const score = (digit) => {
  const controls = onSide(current(), side);
  const radio = controls.find((control) => control.type === "radio" && Number(control.value) === digit);
  if (!radio) return write(controls.find((control) => control.type !== "radio"), digit);
  check(radio);
  if (side === "left") takeSide("right");
  else {
    side = "left";
    step(1);
    markSide();
  }
};

// Where there are too many values to press, the digit is the first of what is written.
const write = (field, digit) => {
  if (!field) return;
  field.focus();
  field.value = digit;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};

// ---- what is missing, and where to begin

export const isAnswered = (aspect) => {
  const names = new Set([...aspect.querySelectorAll("input[required]")].map((control) => control.name));
  return [...names].every((name) => {
    const controls = [...aspect.querySelectorAll(`input[name="${CSS.escape(name)}"]`)];
    return controls.some((control) => (control.type === "radio" ? control.checked : control.value !== ""));
  });
};

// The first aspect that asks for a look. The window stays where it is, but a reveal is read from its beginning.
export const begin = () => {
  const first = one("#choices .aspect.differs") ?? aspects().find((aspect) => !isAnswered(aspect)) ?? aspects()[0];
  side = "left";
  if (hasScales()) markSide();
  if (first) goTo(first);
  else (one("#next") ?? panel())?.focus({ preventScroll: true });
  if (one("#refusal")) show(one("#refusal"));
  else if (first && WIDE.matches) show(first);
  else if (isReveal()) panel().scrollIntoView({ block: "start" });
  const news = stage() === "choose" ? one("#progress") : one("#agreement") ?? one("#progress");
  say(news?.textContent.replace(/\s+/g, " ").trim() ?? "");
};
