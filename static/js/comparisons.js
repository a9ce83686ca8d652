// Keys of the list of comparisons: / to search, j and k to move, x to choose, Enter to open.

const rows = () => [...document.querySelectorAll("#list tbody tr")];
const link = (row) => row?.querySelector(".snippet a");
const isTyping = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const areSingle = () => document.querySelector("[data-single-keys]")?.dataset.singleKeys !== "off";

const current = () => rows().findIndex((row) => row.contains(document.activeElement));

const move = (by) => {
  const all = rows();
  const place = current();
  const next = place < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(place + by, 0), all.length - 1);
  link(all[next])?.focus();
};

const choose = () => {
  const box = rows()[current()]?.querySelector("input[type=checkbox]");
  if (box) box.checked = !box.checked;
};

const search = () => document.querySelector(".filters input[type=search]")?.focus();

const KEYS = { "/": search, j: () => move(1), k: () => move(-1), x: choose };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.altKey === areSingle()) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
