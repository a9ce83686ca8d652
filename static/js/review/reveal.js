// After a save that revealed another choice of the judge, Enter waits until the reviewer can have seen it.

import { comparison, find, stage } from "./page.js";

const HOLD_MS = 600; // as long as the fill of the button in app.css

let before = {};
let revealed = false;
let timer = 0;

const button = () => find("#panel [data-primary]");

// Whether the judge's choices were just revealed on the comparison shown.
export const isReveal = () => revealed;

// Meanwhile no key changes a choice.
export const isHolding = () => Boolean(find("#panel [data-primary][aria-disabled]"));

export const update = () => {
  const followsSave = before.stage === "choose" && stage() === "confirm";
  revealed = followsSave && before.comparison === comparison();
  before = { stage: stage(), comparison: comparison() };
  if (followsSave && find("#choices .aspect.differs")) hold();
};

const hold = () => {
  button().setAttribute("aria-disabled", "true");
  release();
};

const release = () => {
  clearTimeout(timer);
  timer = setTimeout(() => button()?.removeAttribute("aria-disabled"), HOLD_MS);
};

// A letter meant for the next comparison starts the wait again.
export const prolong = () => {
  for (const fill of button().getAnimations({ subtree: true })) fill.currentTime = 0;
  release();
};

export const start = () => {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-primary][aria-disabled]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
};
