// The page of a disagreement: its keys, scroll to the last question, and annotation highlights.

import "./disagreement/mention_autocomplete.js";
import "./disagreement/workbench.js";
import { rangeFromOffsets } from "./review/text_offsets.js";

// Scrolls a conversation to its last turn.
const query = document.getElementById("query-text");
const lastTurn = query.querySelector(".turn:last-child");
if (lastTurn) query.scrollTop += lastTurn.getBoundingClientRect().top - query.getBoundingClientRect().top;

// A link to a comment or to the discussion opens what it is in.
const target = location.hash && document.getElementById(location.hash.slice(1));
for (let box = target && target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
if (target) target.scrollIntoView({ block: "nearest" });

const passageRange = ({ dataset }) => {
  const turn = document.querySelector(`#texts [data-side="${dataset.side}"] [data-turn="${dataset.turn}"]`);
  return turn && rangeFromOffsets(turn, Number(dataset.start), Number(dataset.end));
};

if (globalThis.CSS?.highlights) {
  const ranges = [...document.querySelectorAll("[data-span]")].map(passageRange).filter(Boolean);
  if (ranges.length) CSS.highlights.set("annotation", new Highlight(...ranges));
}
