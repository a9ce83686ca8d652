// Ignores a second click or Enter right after Save, so that revealed choices are not confirmed unseen.

import { comparison, find, stage } from "./page.js";

const HOLD_MS = 600;

let before = {};
let revealed = false;

// Whether the judge's choices were just revealed on the comparison shown.
export const isReveal = () => revealed;

export const update = () => {
  const followsSave = before.stage === "choose" && stage() === "confirm";
  revealed = followsSave && before.comparison === comparison();
  before = { stage: stage(), comparison: comparison() };
  if (followsSave) disableBriefly(find("#panel [data-primary]"));
};

const disableBriefly = (button) => {
  button.setAttribute("aria-disabled", "true");
  setTimeout(() => button.removeAttribute("aria-disabled"), HOLD_MS);
};

export const start = () => {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-primary][aria-disabled]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
};
