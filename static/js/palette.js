// The command palette (Ctrl K or ⌘ K), and / for the search of the page.

import { areSingleKeysOn, isTyping } from "./shortcuts.js";

const dialog = document.getElementById("palette");
const input = dialog.querySelector("input");
const list = dialog.querySelector("ul");
const MAX_SHOWN = 12;

const pageLinks = [...dialog.querySelector("template").content.querySelectorAll("a")].map((link) => ({
  label: link.textContent.trim(),
  group: link.dataset.group,
  url: link.getAttribute("href"),
}));
const actions = [...document.querySelectorAll(".heading .actions a.button[href]")].map((link) => ({
  label: link.textContent.trim(),
  group: "This page",
  url: link.getAttribute("href"),
}));
let evaluations = null; // read when the palette opens for the first time
let options = [];
let active = 0;

const readEvaluations = async () => {
  if (evaluations) return;
  evaluations = [];
  try {
    const response = await fetch(dialog.dataset.evaluations, { headers: { Accept: "application/json" } });
    if (response.ok) evaluations = (await response.json()).map(({ name, url }) => ({ label: name, group: "Evaluations", url }));
  } catch {
    evaluations = null;
  }
  show();
};

// Every typed word has to be in the label or its group; a label that begins with what was typed comes first.
const rank = ({ label, group }, words, typed) => {
  const text = `${label} ${group}`.toLowerCase();
  if (!words.every((word) => text.includes(word))) return -1;
  return label.toLowerCase().startsWith(typed) ? 0 : 1;
};

const find = (typed) => {
  const words = typed.split(/\s+/).filter(Boolean);
  const found = [...actions, ...pageLinks, ...(evaluations ?? [])]
    .map((option) => ({ option, position: rank(option, words, typed) }))
    .filter(({ position }) => position >= 0)
    .sort((one, other) => one.position - other.position)
    .map(({ option }) => option)
    .slice(0, MAX_SHOWN);
  if (typed && dialog.dataset.search) {
    const query = new URLSearchParams({ q: input.value.trim() });
    found.push({ label: `Search comparisons for “${input.value.trim()}”`, group: "Data", url: `${dialog.dataset.search}?${query}` });
  }
  return found;
};

const render = ({ label, group, url }, index) => {
  const item = document.createElement("li");
  item.id = `palette-option-${index}`;
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", index === active);
  const link = Object.assign(document.createElement("a"), { href: url, tabIndex: -1, textContent: label });
  const place = Object.assign(document.createElement("span"), { className: "muted", textContent: group });
  item.append(link, place);
  return item;
};

const select = (index) => {
  active = Math.max(0, Math.min(index, options.length - 1));
  for (const [at, item] of [...list.children].entries()) item.setAttribute("aria-selected", at === active);
  list.children[active]?.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options.length ? `palette-option-${active}` : "");
};

const show = () => {
  options = find(input.value.trim().toLowerCase());
  active = 0;
  list.replaceChildren(...options.map(render));
  select(0);
};

const open = () => {
  if (dialog.open) return;
  input.value = "";
  dialog.showModal();
  show();
  readEvaluations();
};

const handleListKey = (event) => {
  if (event.key === "ArrowDown") select(active + 1);
  else if (event.key === "ArrowUp") select(active - 1);
  else if (event.key === "Enter") list.children[active]?.querySelector("a").click();
  else return;
  event.preventDefault();
};

const pageSearch = () => [...document.querySelectorAll("main input[type=search]")].find((field) => field.checkVisibility());

const openSearch = () => {
  const field = pageSearch();
  if (field) field.focus();
  else open();
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && event.altKey !== areSingleKeysOn()) {
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    openSearch();
  }
});
input.addEventListener("input", show);
input.addEventListener("keydown", handleListKey);
list.addEventListener("click", (event) => event.target.closest("li")?.querySelector("a").click());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
for (const button of document.querySelectorAll("[data-open-palette]")) {
  button.hidden = false;
  button.addEventListener("click", open);
}
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
if (isMac) for (const key of document.querySelectorAll("[data-open-palette] kbd")) key.textContent = "⌘ K";
