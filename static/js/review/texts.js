// The reading side of the review page: the toggles over the texts, and what each of them does.

import { bringDiff, forgetFailure } from "./diff.js";
import { look, remember } from "./looks.js";
import { scrollAgain } from "./scrolling.js";
import "./spans.js";

const root = document.documentElement;
const all = (selector) => [...document.querySelectorAll(selector)];

// ---- toggles: a button says whether it is on, the page takes its look from the root element

const show = (name) => {
  const on = look(name);
  root.toggleAttribute(`data-${name}`, on);
  for (const button of all(`[data-toggle="${name}"]`)) button.setAttribute("aria-pressed", on);
};

const toggle = (name) => {
  remember(name, !look(name));
  show(name);
  if (name === "diff") look(name) ? bringDiff().then(scrollAgain) : forgetFailure();
  for (const body of all(".side-body.whole")) body.classList.remove("whole");
  scrollAgain();
};

// ---- parts that open and close

const PARTS = ["query", "reference", "guidelines"];

const openParts = () => {
  for (const name of PARTS) {
    const part = document.getElementById(name);
    if (part) part.open = look(name);
  }
};

document.addEventListener("toggle", (event) => {
  if (PARTS.includes(event.target.id) && event.target.isConnected) remember(event.target.id, event.target.open);
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
  const rest = event.target.closest("[data-unclamp]");
  if (rest) {
    const side = rest.closest(".side");
    rest.closest(".side-body").classList.add("whole");
    side.focus({ preventScroll: true });
  }
});

// Of a conversation the last question is in sight; what was said before it stands above.
const showQuestion = () => {
  const body = document.querySelector("#query .query-body");
  const asked = body?.querySelector(".earlier[open] ~ .asked");
  if (asked) body.scrollTop += asked.getBoundingClientRect().top - body.getBoundingClientRect().top;
};

const begin = () => {
  for (const name of ["sync", "expanded", "diff"]) show(name);
  openParts();
  showQuestion();
  if (look("diff")) bringDiff();
};

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "workbench") begin();
});
begin();
