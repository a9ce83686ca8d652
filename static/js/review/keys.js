// The review page by keyboard. Keys do nothing while somebody writes, composes, or reads a dialog.

import { aspects, choose, current, goTo, goToNumber, hasScales, isAnswered, score, step, takeSide } from "./choosing.js";
import { counted, desk, one, panel, say, show, stage } from "./page.js";
import { scrollTexts } from "./scrolling.js";
import { isBusy, onceCaughtUp } from "./steps.js";

const CHOICES = { a: "A", ArrowLeft: "A", t: "tie", b: "B", ArrowRight: "B", x: "both_bad" };
const SIDES = { a: "left", ArrowLeft: "left", b: "right", ArrowRight: "right" };

const open = (details, field) => {
  details.open = true;
  field.focus();
};

// On an aspect where the judge differs the note is about that aspect, else about the comparison.
const note = () => {
  const why = current()?.querySelector(".why input[type=text], .why textarea");
  if (why) why.focus();
  else if (one("#note")) open(one("#note"), one("#note-text"));
};

const primary = () => {
  const missing = aspects().find((aspect) => !isAnswered(aspect));
  if (missing) {
    goTo(missing);
    show(missing);
    say(`Choose for ${missing.dataset.name} too.`);
  } else {
    one("[data-primary]")?.click();
  }
};

// Where the judge agrees nothing is left to be done; what differs asks for a look, and where nothing does all is saved.
const confirmAgreeing = () => {
  if (stage() !== "confirm") return;
  const differing = aspects().filter((aspect) => aspect.matches(".differs"));
  if (!differing.length) {
    one("#choices").requestSubmit(one("[data-primary]"));
    return;
  }
  for (const aspect of aspects()) aspect.toggleAttribute("data-confirmed", !differing.includes(aspect));
  goTo(differing[0]);
  show(differing[0]);
  say(`${counted(aspects().length - differing.length, "aspect")} confirmed, the judge differs on ${differing.length}.`);
};

const undo = () => {
  if (one("#undo")) one("#undo").requestSubmit();
  else if (panel().dataset.stage === "confirm") say("First choices stay as they are. Change the final ones here.");
};

const sheet = () => {
  drawTools();
  one("#keys").showModal();
};

const STEPS = {
  PageDown: () => scrollTexts(0.85), // focus is among the choices
  PageUp: () => scrollTexts(-0.85),
  Home: () => scrollTexts(-1e6),
  End: () => scrollTexts(1e6),
  " ": () => scrollTexts(0.85),
  Enter: primary,
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  c: confirmAgreeing,
  u: () => onceCaughtUp(undo),
  s: () => one("#skip") && open(one("#skip"), one("#skip-reason")),
  n: note,
  p: () => onceCaughtUp(() => one("#earlier")?.click()),
  "?": sheet,
};

// ---- tools of the page say their key themselves

const tools = () => [...document.querySelectorAll("#workbench [data-key]")].filter((tool) => tool.checkVisibility());
const tool = (key) => tools().find((one) => one.dataset.key.toLowerCase() === key);

const drawTools = () => {
  const list = one("#keys-tools");
  list.replaceChildren(...tools().flatMap((tool) => {
    const [term, words] = [document.createElement("dt"), document.createElement("dd")];
    term.append(Object.assign(document.createElement("kbd"), { textContent: tool.dataset.key }));
    words.textContent = nameOf(tool);
    return [term, words];
  }));
};

const nameOf = (tool) => {
  const copy = tool.cloneNode(true);
  for (const key of copy.querySelectorAll("kbd")) key.remove();
  return tool.getAttribute("aria-label") || tool.title || copy.textContent.trim();
};

// ---- which key was meant

const isField = (target) => target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
const isControl = (target) => target.closest("button, a, summary");
const isCharacter = (key) => key.length === 1 && key !== " ";
const areSingle = () => desk().singleKeys === "on";

// A letter by what it writes, or by its place where the layout writes no Latin ones or Alt changes it.
const keyOf = (event) => {
  if (event.key.length > 1 || (!event.altKey && /^[\x20-\x7e]$/.test(event.key))) {
    return event.key.length > 1 ? event.key : event.key.toLowerCase();
  }
  if (event.altKey && event.shiftKey && event.key === "?") return "?";
  return /^(?:Key|Digit|Numpad)([A-Z\d])$/.exec(event.code)?.[1].toLowerCase() ?? event.key;
};

// Characters act alone, or with Alt where the person does not want single keys; nothing else takes modifiers.
const isMeant = (event, key) => {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.keyCode === 229) return false;
  if (isCharacter(key) && event.altKey === areSingle()) return false;
  if (!isCharacter(key) && event.altKey) return false;
  return !event.shiftKey || key === "?" || !/^[a-z]$|^[A-Z]\w+|^ $/.test(key);
};

const digitMeans = (digit) => (hasScales() ? () => score(digit) : aspects()[digit - 1] && (() => goToNumber(digit)));

const meant = (key) => {
  if (hasScales() && SIDES[key]) return () => takeSide(SIDES[key]);
  if (CHOICES[key] && one("#choices")) return () => choose(CHOICES[key]);
  if (/^\d$/.test(key)) return digitMeans(Number(key));
  return STEPS[key] ?? (tool(key) && (() => tool(key).click()));
};

const leave = (field) => {
  field.blur();
  const box = field.closest("details");
  if (box && !field.value) box.open = false;
  goTo(current());
};

const pressed = (event) => {
  if (one("dialog[open]") || !one("#workbench")) return;
  if (isField(event.target)) {
    const ends = event.key === "Escape" || (event.key === "Enter" && event.target.closest(".why") && !event.isComposing);
    if (ends && event.target.closest("#panel")) {
      event.preventDefault();
      leave(event.target);
    }
    return;
  }
  if ((event.key === "Enter" || event.key === " ") && isControl(event.target)) return;
  const key = keyOf(event);
  const act = isMeant(event, key) && meant(key);
  if (!act) return;
  event.preventDefault();
  if (!isBusy() && !(event.repeat && key === "Enter")) act();
};

export const start = () => {
  document.addEventListener("keydown", pressed);
  document.addEventListener("focusin", (event) => goTo(event.target.closest("#choices .aspect"), false));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-confirm]")) confirmAgreeing();
    if (!event.target.closest("#keys-open")) return;
    event.preventDefault();
    sheet();
  });
};
