// Keyboard shortcuts of the review page. They are off while the reviewer types, composes or reads a dialog.

import {
  aspects,
  choose,
  chooseRemaining,
  current,
  focusAspect,
  focusAspectNumber,
  hasScales,
  isAnswered,
  moveBy,
  score,
  selectSide,
} from "./choices.js";
import { announce, find, panel, pluralize, scrollIntoView, stage } from "./page.js";
import { isHolding, prolong } from "./reveal.js";
import { jumpToAnswer, scrollTexts } from "./scroll_sync.js";
import { areSingleKeysOn, isTyping } from "../shortcuts.js";
import { afterSync, isBusy } from "./steps.js";

const CHOICES = { a: "A", ArrowLeft: "A", t: "tie", b: "B", ArrowRight: "B", x: "both_bad" };
const SIDES = { a: "left", ArrowLeft: "left", b: "right", ArrowRight: "right" };

const open = (details, field) => {
  details.open = true;
  field.focus();
};

// The note is about the current aspect if the judge differs on it, otherwise about the comparison.
const focusNote = () => {
  const why = current()?.querySelector(".reason input[type=text], .reason textarea");
  if (why) why.focus();
  else if (find("#note")) open(find("#note"), find("#note-text"));
};

const activatePrimary = () => {
  const missing = aspects().find((aspect) => !isAnswered(aspect));
  if (missing) {
    focusAspect(missing);
    scrollIntoView(missing);
    announce(`${missing.dataset.name} is still missing.`);
  } else {
    find("[data-primary]")?.click();
  }
};

// Confirms the aspects on which the judge agrees and goes to the first that differs; saves if none does.
const acceptAgreements = () => {
  if (stage() !== "confirm") return;
  const differing = aspects().filter((aspect) => aspect.matches(".differs"));
  if (!differing.length) {
    find("#choices").requestSubmit(find("[data-primary]"));
    return;
  }
  for (const aspect of aspects()) aspect.toggleAttribute("data-confirmed", !differing.includes(aspect));
  focusAspect(differing[0]);
  scrollIntoView(differing[0]);
  announce(`${pluralize(aspects().length - differing.length, "aspect")} accepted, the judge disagrees on ${differing.length}.`);
};

const undo = () => {
  if (find("#undo")) find("#undo").requestSubmit();
  else if (panel().dataset.stage === "confirm") announce("Your first choices are kept. Change the final ones here.");
};

const showShortcuts = () => {
  listTools();
  find("#keys").showModal();
};

const scrollRationale = (share) => {
  const rationale = find("#rationale");
  rationale?.scrollBy({ top: share * rationale.clientHeight });
};

const leaveFocusMode = () => find('[data-toggle="focus"][aria-pressed="true"]')?.click();

const ACTIONS = {
  PageDown: () => scrollTexts(0.85), // focus is among the choices
  PageUp: () => scrollTexts(-0.85),
  Home: () => scrollTexts(-1e6),
  End: () => scrollTexts(1e6),
  " ": () => scrollTexts(0.85),
  Enter: activatePrimary,
  ArrowDown: () => moveBy(1),
  ArrowUp: () => moveBy(-1),
  Escape: leaveFocusMode,
  j: () => scrollRationale(0.7),
  k: () => scrollRationale(-0.7),
  l: jumpToAnswer,
  c: acceptAgreements,
  u: () => afterSync(undo),
  s: () => find("#skip") && open(find("#skip"), find("#skip-reason")),
  n: focusNote,
  p: () => afterSync(() => find("#earlier")?.click()),
  "?": showShortcuts,
};

// ---- buttons with a data-key

const tools = () => [...document.querySelectorAll("#comparison [data-key]")].filter((tool) => tool.checkVisibility());
const tool = (key) => tools().find((button) => button.dataset.key.toLowerCase() === key);

const listTools = () => {
  const list = find("#keys-tools");
  list.replaceChildren(...tools().flatMap((tool) => {
    const [term, description] = [document.createElement("dt"), document.createElement("dd")];
    term.append(Object.assign(document.createElement("kbd"), { textContent: tool.dataset.key }));
    description.textContent = labelOf(tool);
    return [term, description];
  }));
};

const labelOf = (tool) => {
  const copy = tool.cloneNode(true);
  for (const key of copy.querySelectorAll("kbd")) key.remove();
  return tool.getAttribute("aria-label") || tool.title || copy.textContent.trim();
};

// ---- from event to action

const isControl = (target) => target.closest("button, a, summary");
const isCharacter = (key) => key.length === 1 && key !== " ";

// A letter is read from the character, or from the key's position on non-Latin layouts and with Alt.
const keyOf = (event) => {
  if (event.key.length > 1 || (!event.altKey && /^[\x20-\x7e]$/.test(event.key))) {
    return event.key.length > 1 ? event.key : event.key.toLowerCase();
  }
  if (event.altKey && event.shiftKey && event.key === "?") return "?";
  return /^(?:Key|Digit|Numpad)([A-Z\d])$/.exec(event.code)?.[1].toLowerCase() ?? event.key;
};

const isScroll = (key) => /^(?:Page|Home|End|[ jkl]$)/.test(key);

// Characters act alone, or with Alt if single keys are turned off; other keys take no modifiers, choices take Shift.
const isShortcut = (event, key) => {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.keyCode === 229) return false;
  if (isCharacter(key) && event.altKey === areSingleKeysOn()) return false;
  if (!isCharacter(key) && event.altKey) return false;
  return !event.shiftKey || key === "?" || /^[atbx]$/.test(key) || !/^[a-z]$|^[A-Z]\w+|^ $/.test(key);
};

const actionForDigit = (digit) => {
  if (hasScales()) return () => score(digit);
  return aspects()[digit - 1] && (() => focusAspectNumber(digit));
};

const actionFor = (key, isShifted) => {
  if (isShifted && CHOICES[key]) return () => chooseRemaining(CHOICES[key]);
  if (hasScales() && SIDES[key]) return () => selectSide(SIDES[key]);
  if (CHOICES[key] && find("#choices")) return () => choose(CHOICES[key]);
  if (/^\d$/.test(key)) return actionForDigit(Number(key));
  return ACTIONS[key] ?? (tool(key) && (() => tool(key).click()));
};

const leaveField = (field) => {
  field.blur();
  const box = field.closest("details");
  if (box && !field.value) box.open = false;
  focusAspect(current());
};

const handleKeydown = (event) => {
  if (find("dialog[open]") || !find("#comparison")) return undefined;
  if (isTyping(event.target)) {
    const ends = event.key === "Escape" || (event.key === "Enter" && event.target.closest(".reason") && !event.isComposing);
    if (ends && event.target.closest("#panel")) {
      event.preventDefault();
      leaveField(event.target);
    }
    return undefined;
  }
  if ((event.key === "Enter" || event.key === " ") && isControl(event.target)) return undefined;
  const key = keyOf(event);
  const action = isShortcut(event, key) && actionFor(key, event.shiftKey);
  if (!action) return undefined;
  event.preventDefault();
  if (isHolding() && !isScroll(key)) return isCharacter(key) && prolong();
  if (!isBusy() && !(event.repeat && key === "Enter")) action();
  return undefined;
};

export const start = () => {
  document.addEventListener("keydown", handleKeydown);
  document.addEventListener("focusin", (event) => focusAspect(event.target.closest("#choices .aspect"), false));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-confirm]")) acceptAgreements();
    if (!event.target.closest("#keys-open")) return;
    event.preventDefault();
    showShortcuts();
  });
};
