// Shortcuts of the comparison list: j and k move, x selects, Enter opens. / is in palette.js.

import { areSingleKeysOn, isTyping } from "./shortcuts.js";

const rows = () => [...document.querySelectorAll("#list tbody tr")];
const link = (row) => row?.querySelector(".snippet a");

const currentIndex = () => rows().findIndex((row) => row.contains(document.activeElement));

const move = (by) => {
  const all = rows();
  const index = currentIndex();
  const next = index < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(index + by, 0), all.length - 1);
  link(all[next])?.focus();
};

const toggleRow = () => {
  const box = rows()[currentIndex()]?.querySelector("input[type=checkbox]");
  box?.click();
};

// The number of selected rows is shown in the bulk actions; a box above the column selects the page.
const boxes = () => [...document.querySelectorAll("#list tbody input[name=comparison]")];
const pageBox = () => document.querySelector("#list [data-select-page]");

const showSelected = () => {
  const all = boxes();
  const selected = all.filter(({ checked }) => checked).length;
  const box = pageBox();
  if (!box) return;
  box.hidden = false;
  box.checked = selected === all.length;
  box.indeterminate = selected > 0 && selected < all.length;
  document.querySelector("[data-selected-label]").replaceChildren(`(${selected} selected)`);
  document.querySelector("#act").classList.toggle("has-selection", selected > 0);
};

document.addEventListener("change", (event) => {
  if (event.target === pageBox()) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.closest("#list")) showSelected();
});
document.addEventListener("htmx:afterSwap", showSelected);
window.addEventListener("pageshow", showSelected); // browsers restore ticked boxes on the way back

// Leave empty filters out of the address.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.matches?.(".filters")) return;
  for (const [name, value] of [...detail.formData.entries()]) if (value === "") detail.formData.delete(name);
});

const KEYS = { j: () => move(1), k: () => move(-1), x: toggleRow };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.altKey === areSingleKeysOn()) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// Typing already searches; leaving the field must not search again, which would clear the selection.
document.querySelector(".filters input[type=search]")?.addEventListener("change", (event) => event.stopPropagation());
