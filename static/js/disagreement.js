// Keys for the previous and next disagreement, scroll to the last question, and annotation highlights.

import "./disagreement/mention_autocomplete.js";
import { rangeFromOffsets } from "./review/text_offsets.js";

const LINKS = { j: "following", k: "previous" };
const texts = document.querySelector("[data-keys]");
const withAlt = texts?.dataset.keys === "alt";

const isTyping = (target) =>
  target.isContentEditable || target.matches("textarea, select, input:not([type='radio'], [type='checkbox'])");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey !== withAlt || event.defaultPrevented) return;
  if (!withAlt && isTyping(event.target)) return;
  const link = document.getElementById(LINKS[event.key]);
  if (!link) return;
  event.preventDefault();
  link.click();
});

// Scrolls a conversation to its last turn.
const query = document.getElementById("query-text");
const lastTurn = query.querySelector(".turn:last-child");
if (lastTurn) query.scrollTop += lastTurn.getBoundingClientRect().top - query.getBoundingClientRect().top;

const passageRange = ({ dataset }) => {
  const turn = texts.querySelector(`[data-side="${dataset.side}"] [data-turn="${dataset.turn}"]`);
  return turn && rangeFromOffsets(turn, Number(dataset.start), Number(dataset.end));
};

if (globalThis.CSS?.highlights) {
  const ranges = [...document.querySelectorAll("[data-span]")].map(passageRange).filter(Boolean);
  if (ranges.length) CSS.highlights.set("annotation", new Highlight(...ranges));
}
