// What has only just been revealed is not confirmed unseen: a second click or a second Enter, meant for Save, does nothing.

import { comparison, one, stage } from "./page.js";

const LOOK = 600; // milliseconds

let before = {};
let revealed = false;

// Whether the judge's choices have just come into the panel of the comparison that is shown.
export const isReveal = () => revealed;

export const begin = () => {
  const leadsFromSave = before.stage === "choose" && stage() === "confirm";
  revealed = leadsFromSave && before.comparison === comparison();
  before = { stage: stage(), comparison: comparison() };
  if (leadsFromSave) hold(one("#panel [data-primary]"));
};

const hold = (button) => {
  button.setAttribute("aria-disabled", "true");
  setTimeout(() => button.removeAttribute("aria-disabled"), LOOK);
};

export const start = () => {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-primary][aria-disabled]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
};
