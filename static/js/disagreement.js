// One key each to the disagreement before and after, never while somebody writes; the last question in sight, and
// marked passages where they stand.

import "./disagreement/calling.js";
import { rangeOver } from "./review/offsets.js";

const LINKS = { j: "following", k: "previous" };
const texts = document.querySelector("[data-keys]");
const withAlt = texts?.dataset.keys === "alt";

const writes = (target) =>
  target.isContentEditable || target.matches("textarea, select, input:not([type='radio'], [type='checkbox'])");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey !== withAlt || event.defaultPrevented) return;
  if (!withAlt && writes(event.target)) return;
  const link = document.getElementById(LINKS[event.key]);
  if (!link) return;
  event.preventDefault();
  link.click();
});

// Of a conversation the last turn is in sight; what was said before it stands above.
const query = document.getElementById("query-text");
const asked = query.querySelector(".turn:last-child");
if (asked) query.scrollTop += asked.getBoundingClientRect().top - query.getBoundingClientRect().top;

const passage = ({ dataset }) => {
  const turn = texts.querySelector(`[data-side="${dataset.side}"] [data-turn="${dataset.turn}"]`);
  return turn && rangeOver(turn, Number(dataset.start), Number(dataset.end));
};

if (globalThis.CSS?.highlights) {
  const ranges = [...document.querySelectorAll("[data-span]")].map(passage).filter(Boolean);
  if (ranges.length) CSS.highlights.set("annotation", new Highlight(...ranges));
}
