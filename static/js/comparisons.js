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
  box?.click();
};

// How many are chosen stands where it is said what to do with them; a box above the column chooses a whole page.
const boxes = () => [...document.querySelectorAll("#list tbody input[name=comparison]")];
const ofPage = () => document.querySelector("#list [data-choose-page]");

const tell = () => {
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  const whole = ofPage();
  if (!whole) return;
  whole.hidden = false;
  whole.checked = chosen === all.length;
  whole.indeterminate = chosen > 0 && chosen < all.length;
  document.querySelector("[data-chosen]")?.replaceChildren(chosen ? `: ${chosen}` : ": none yet");
  document.querySelector("[data-number-chosen]").replaceChildren(chosen ? ` · ${chosen} chosen` : "");
  document.querySelector("#act").classList.toggle("held", chosen > 0);
};

document.addEventListener("change", (event) => {
  if (event.target === ofPage()) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.closest("#list")) tell();
});
document.addEventListener("htmx:afterSwap", tell);
window.addEventListener("pageshow", tell); // the browser keeps what was ticked when one comes back

// An address says what is asked, not what is left open.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.matches?.(".filters")) return;
  for (const [name, value] of [...detail.formData.entries()]) if (value === "") detail.formData.delete(name);
});

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

// What was typed is searched for while it is typed; leaving the field asks nothing new, and so keeps what was ticked.
document.querySelector(".filters input[type=search]")?.addEventListener("change", (event) => event.stopPropagation());
