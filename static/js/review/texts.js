// The texts of the review page: view toggles and collapsible parts.

import { clearFailure, loadDiff } from "./diff.js";
import { preference, setPreference } from "./preferences.js";
import { jumpToAnswer, resync } from "./scroll_sync.js";
import "./spans.js";

const root = document.documentElement;
const all = (selector) => [...document.querySelectorAll(selector)];

// ---- toggles: state is in aria-pressed and in an attribute of the root element

const applyToggle = (name) => {
  const on = preference(name);
  root.toggleAttribute(`data-${name}`, on);
  for (const button of all(`[data-toggle="${name}"]`)) button.setAttribute("aria-pressed", on);
};

const toggle = (name) => {
  setPreference(name, !preference(name));
  applyToggle(name);
  if (name === "diff") preference(name) ? loadDiff().then(resync) : clearFailure();
  for (const body of all(".side-body.expanded")) body.classList.remove("expanded");
  resync();
};

// ---- collapsible parts

const PARTS = ["query", "reference", "guidelines"];

const openParts = () => {
  for (const name of PARTS) {
    const part = document.getElementById(name);
    if (part) part.open = preference(name);
  }
};

document.addEventListener("toggle", (event) => {
  if (PARTS.includes(event.target.id) && event.target.isConnected) setPreference(event.target.id, event.target.open);
}, true);

document.addEventListener("keydown", (event) => {
  const drawer = event.key === "Escape" && event.target.closest?.(".drawer[open]");
  if (!drawer) return;
  drawer.open = false;
  drawer.querySelector("summary").focus();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-toggle]");
  if (button) toggle(button.dataset.toggle);
  if (event.target.closest("[data-jump]")) jumpToAnswer();
  const showAll = event.target.closest("[data-show-all]");
  if (showAll) {
    const side = showAll.closest(".side");
    showAll.closest(".side-body").classList.add("expanded");
    side.focus({ preventScroll: true });
  }
});

const prepare = () => {
  for (const name of ["sync", "expanded", "diff", "focus", "instant"]) applyToggle(name);
  openParts();
  if (preference("diff")) loadDiff();
};

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "comparison") prepare();
});
prepare();
