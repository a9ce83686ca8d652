// Highlights in a response: created from a selection, highlighted in the text, listed below with their comments.

import { drawNumbers } from "./margin_numbers.js";
import { offsetsOf, rangeFromOffsets, textNodesIn, textOf } from "./text_offsets.js";
import { errorMessage } from "./requests.js";
import { parseHtml } from "./page.js";
import { lastSide } from "./scroll_sync.js";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const HIGHLIGHT = "annotation";

// ---- highlights

const turnOf = (side, number) => side.querySelector(`.original-text [data-turn="${number}"]`);

// The passage as a range. If its text moved, the nearest occurrence counts.
const rangeOf = (item) => {
  const turn = turnOf(item.closest(".side"), item.dataset.turn);
  if (!turn) return null;
  const quote = item.querySelector(".quote").textContent;
  const [start, end] = [Number(item.dataset.start), Number(item.dataset.end)];
  const range = rangeFromOffsets(turn, start, end);
  if (range?.toString() === quote || !textOf(turn).includes(quote)) return range;
  const text = textOf(turn);
  const places = [];
  for (let at = text.indexOf(quote); at >= 0; at = text.indexOf(quote, at + 1)) places.push([...text.slice(0, at)].length);
  const nearest = places.reduce((best, other) => (Math.abs(other - start) < Math.abs(best - start) ? other : best));
  return rangeFromOffsets(turn, nearest, nearest + [...quote].length);
};

const wrap = (range) => {
  const turn = range.startContainer.parentElement.closest("[data-turn]");
  for (const node of textNodesIn(turn).filter((node) => range.intersectsNode(node))) {
    const part = document.createRange();
    part.selectNodeContents(node);
    if (node === range.startContainer) part.setStart(node, range.startOffset);
    if (node === range.endContainer) part.setEnd(node, range.endOffset);
    if (!part.collapsed) part.surroundContents(Object.assign(document.createElement("mark"), { className: HIGHLIGHT }));
  }
};

const unwrap = () => {
  for (const mark of all(`mark.${HIGHLIGHT}`)) {
    const parent = mark.parentNode;
    mark.replaceWith(...mark.childNodes);
    parent.normalize();
  }
};

const numberOf = (item) => [...item.parentElement.children].indexOf(item) + 1;

const passages = () => {
  const each = all(".spans li[data-span]").map((item) => ({ item, number: numberOf(item), range: rangeOf(item) }));
  return each.filter(({ range }) => range);
};

const showSpans = () => {
  if (globalThis.CSS?.highlights) {
    CSS.highlights.delete(HIGHLIGHT);
    const ranges = passages().map(({ range }) => range);
    if (ranges.length) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges));
  } else {
    unwrap();
    for (const { item } of passages()) wrap(rangeOf(item));
  }
  drawNumbers(passages(), focusItem);
};

const scrollToPassage = (item) => {
  const range = rangeOf(item);
  if (!range) return;
  item.closest(".side").querySelector(".side-body").classList.add("expanded");
  const node = range.startContainer.parentElement;
  node.scrollIntoView({ block: "center" });
  getSelection().removeAllRanges();
  getSelection().addRange(range);
};

// A click on a highlight leads to its entry.
const itemAt = (event) => {
  const at = document.caretPositionFromPoint?.(event.clientX, event.clientY);
  if (!at || !getSelection().isCollapsed) return null;
  const items = all("li[data-span]", event.target.closest(".side"));
  return items.find((item) => rangeOf(item)?.isPointInRange(at.offsetNode, at.offset)) ?? null;
};

const focusItem = (item) => {
  item.tabIndex = -1;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
};

// ---- new highlights

const formOf = (side) => side.querySelector(".annotate");

const selectedOffsets = () => {
  const selection = getSelection();
  return selection.rangeCount && !selection.isCollapsed ? offsetsOf(selection.getRangeAt(0)) : null;
};

const offerButton = Object.assign(document.createElement("button"), { type: "button", className: "button annotate-button", hidden: true });
offerButton.innerHTML = "Highlight <kbd>m</kbd>";

const positionAt = (box, element) => {
  const width = element.offsetWidth;
  const left = Math.min(Math.max(box.left, 8), Math.max(innerWidth - width - 8, 8));
  const below = box.bottom + 6;
  const top = below + element.offsetHeight < innerHeight ? below : Math.max(box.top - element.offsetHeight - 6, 8);
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
};

const updateOffer = () => {
  const offsets = selectedOffsets();
  offerButton.hidden = !offsets;
  if (!offsets) return;
  const boxes = getSelection().getRangeAt(0).getClientRects();
  if (!offerButton.isConnected) document.body.append(offerButton);
  positionAt(boxes[boxes.length - 1] ?? getSelection().getRangeAt(0).getBoundingClientRect(), offerButton);
};

const fillForm = (form, offsets) => {
  form.elements.turn.value = offsets ? offsets.turn.dataset.turn : "";
  form.elements.start.value = offsets ? offsets.start : "";
  form.elements.end.value = offsets ? offsets.end : "";
  if (offsets) form.elements.quote.value = offsets.quote;
};

const annotate = () => {
  const offsets = selectedOffsets();
  const side = offsets ? offsets.turn.closest(".side") : lastSide();
  const details = formOf(side);
  const form = details.querySelector("form");
  const box = offsets && getSelection().getRangeAt(0).getBoundingClientRect();
  fillForm(form, offsets);
  details.classList.toggle("floating", Boolean(offsets));
  details.open = true;
  if (offsets) positionAt(box, form);
  else form.scrollIntoView({ block: "nearest" });
  form.elements[offsets ? "comment" : "quote"].focus({ preventScroll: Boolean(offsets) });
  offerButton.hidden = true;
};

const close = (details) => {
  details.open = false;
  details.classList.remove("floating");
  details.closest(".side").focus({ preventScroll: true });
};

// ---- forms: the server responds with the new list

const submitForm = async (form) => {
  const list = form.closest(".spans");
  const side = list.closest(".side");
  const response = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { "HX-Request": "true" } });
  if (response.status >= 500) throw new Error(`status ${response.status}`);
  const { status, headers } = response;
  const text = await response.text();
  const fresh = parseHtml(text).querySelector(".spans");
  if (!fresh) return showError(form, errorMessage({ status, headers, text }));
  list.replaceWith(document.adoptNode(fresh));
  showSpans();
  if (response.status === 422) fresh.querySelector(".annotate textarea")?.focus();
  else side.focus({ preventScroll: true });
  return undefined;
};

const showError = (form, message) => {
  const notice = form.querySelector(".notice") ?? document.createElement("p");
  notice.className = "notice error";
  notice.setAttribute("role", "alert");
  notice.textContent = message;
  form.prepend(notice);
};

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-spans]")) return;
  event.preventDefault();
  const button = event.submitter;
  if (button) button.disabled = true;
  try {
    await submitForm(form);
  } catch {
    showError(form, "No connection to the server. Nothing was saved. Try again.");
  }
  if (button) button.disabled = false;
});

document.addEventListener("click", (event) => {
  const target = event.target;
  if (target.closest("[data-annotate]") || target.closest(".annotate-button")) annotate();
  if (target.closest("[data-close]")) close(target.closest("details"));
  if (target.closest("[data-show-passage]")) scrollToPassage(target.closest("li"));
  const item = target.closest(".original-text") && !target.closest("a, button") && itemAt(event);
  if (item) focusItem(item);
});

// A click on the button must not clear the selection before it is read.
document.addEventListener("mousedown", (event) => {
  if (event.target.closest(".annotate-button, [data-annotate]")) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const details = event.key === "Escape" && event.target.closest?.(".annotate[open], .edit-annotation[open]");
  if (details) close(details);
});

let selectionTimer = 0;
document.addEventListener("selectionchange", () => {
  clearTimeout(selectionTimer);
  selectionTimer = setTimeout(updateOffer, 150);
});
document.addEventListener("scroll", () => { offerButton.hidden = true; }, { capture: true, passive: true });
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "comparison") showSpans();
});
// Ranges do not follow a code block that is moved into its frame.
let frameRequest = 0;
document.addEventListener("framed", () => {
  frameRequest ||= requestAnimationFrame(() => {
    frameRequest = 0;
    showSpans();
  });
});
showSpans();
