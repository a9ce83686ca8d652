// Passages of a response: marked by selecting them, shown where they stand, listed below with their comments.

import { drawNumbers } from "./margin.js";
import { placeOf, rangeOver, textOf, wordsIn } from "./offsets.js";
import { wordsOf } from "./asking.js";
import { parsed } from "./page.js";
import { lastSide } from "./scrolling.js";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const HIGHLIGHT = "annotation";

// ---- shown where they stand

const turnOf = (side, number) => side.querySelector(`.as-written [data-turn="${number}"]`);

// The passage as a range. Where the words moved, they are looked for nearest to where they stood.
const found = (item) => {
  const turn = turnOf(item.closest(".side"), item.dataset.turn);
  if (!turn) return null;
  const quote = item.querySelector(".quote").textContent;
  const [start, end] = [Number(item.dataset.start), Number(item.dataset.end)];
  const range = rangeOver(turn, start, end);
  if (range?.toString() === quote || !textOf(turn).includes(quote)) return range;
  const text = textOf(turn);
  const places = [];
  for (let at = text.indexOf(quote); at >= 0; at = text.indexOf(quote, at + 1)) places.push([...text.slice(0, at)].length);
  const nearest = places.reduce((one, other) => (Math.abs(other - start) < Math.abs(one - start) ? other : one));
  return rangeOver(turn, nearest, nearest + [...quote].length);
};

const wrap = (range) => {
  const turn = range.startContainer.parentElement.closest("[data-turn]");
  for (const node of wordsIn(turn).filter((one) => range.intersectsNode(one))) {
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
  const each = all(".spans li[data-span]").map((item) => ({ item, number: numberOf(item), range: found(item) }));
  return each.filter(({ range }) => range);
};

const showSpans = () => {
  if (globalThis.CSS?.highlights) {
    CSS.highlights.delete(HIGHLIGHT);
    const ranges = passages().map(({ range }) => range);
    if (ranges.length) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges));
  } else {
    unwrap();
    for (const { item } of passages()) wrap(found(item));
  }
  drawNumbers(passages(), goToItem);
};

const goToPassage = (item) => {
  const range = found(item);
  if (!range) return;
  item.closest(".side").querySelector(".side-body").classList.add("whole");
  const node = range.startContainer.parentElement;
  node.scrollIntoView({ block: "center" });
  getSelection().removeAllRanges();
  getSelection().addRange(range);
};

// A click into a marked passage leads to what was said of it.
const itemAt = (event) => {
  const at = document.caretPositionFromPoint?.(event.clientX, event.clientY);
  if (!at || !getSelection().isCollapsed) return null;
  const items = all("li[data-span]", event.target.closest(".side"));
  return items.find((item) => found(item)?.isPointInRange(at.offsetNode, at.offset)) ?? null;
};

const goToItem = (item) => {
  item.tabIndex = -1;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
};

// ---- marking

const formOf = (side) => side.querySelector(".annotate");

const selected = () => {
  const selection = getSelection();
  return selection.rangeCount && !selection.isCollapsed ? placeOf(selection.getRangeAt(0)) : null;
};

const offer = Object.assign(document.createElement("button"), { type: "button", className: "button offer-annotate", hidden: true });
offer.innerHTML = "Annotate <kbd>m</kbd>";

const placeAt = (box, element) => {
  const width = element.offsetWidth;
  const left = Math.min(Math.max(box.left, 8), Math.max(innerWidth - width - 8, 8));
  const below = box.bottom + 6;
  const top = below + element.offsetHeight < innerHeight ? below : Math.max(box.top - element.offsetHeight - 6, 8);
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
};

const offerToAnnotate = () => {
  const place = selected();
  offer.hidden = !place;
  if (!place) return;
  const boxes = getSelection().getRangeAt(0).getClientRects();
  if (!offer.isConnected) document.body.append(offer);
  placeAt(boxes[boxes.length - 1] ?? getSelection().getRangeAt(0).getBoundingClientRect(), offer);
};

const fill = (form, place) => {
  form.elements.turn.value = place ? place.turn.dataset.turn : "";
  form.elements.start.value = place ? place.start : "";
  form.elements.end.value = place ? place.end : "";
  if (place) form.elements.quote.value = place.quote;
};

const annotate = () => {
  const place = selected();
  const side = place ? place.turn.closest(".side") : lastSide();
  const details = formOf(side);
  const form = details.querySelector("form");
  const box = place && getSelection().getRangeAt(0).getBoundingClientRect();
  fill(form, place);
  details.classList.toggle("floating", Boolean(place));
  details.open = true;
  if (place) placeAt(box, form);
  else form.scrollIntoView({ block: "nearest" });
  form.elements[place ? "comment" : "quote"].focus({ preventScroll: Boolean(place) });
  offer.hidden = true;
};

const close = (details) => {
  details.open = false;
  details.classList.remove("floating");
  details.closest(".side").focus({ preventScroll: true });
};

// ---- what is stored comes back as the list of that response

const send = async (form) => {
  const list = form.closest(".spans");
  const side = list.closest(".side");
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { "HX-Request": "true" } });
  if (answer.status >= 500) throw new Error(`status ${answer.status}`);
  const { status, headers } = answer;
  const text = await answer.text();
  const fresh = parsed(text).querySelector(".spans");
  if (!fresh) return refuse(form, wordsOf({ status, headers, text }));
  list.replaceWith(document.adoptNode(fresh));
  showSpans();
  if (answer.status === 422) fresh.querySelector(".annotate textarea")?.focus();
  else side.focus({ preventScroll: true });
  return undefined;
};

const refuse = (form, words) => {
  const notice = form.querySelector(".notice") ?? document.createElement("p");
  notice.className = "notice error";
  notice.setAttribute("role", "alert");
  notice.textContent = words;
  form.prepend(notice);
};

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-spans]")) return;
  event.preventDefault();
  const button = event.submitter;
  if (button) button.disabled = true;
  try {
    await send(form);
  } catch {
    refuse(form, "The server could not be reached. Nothing was stored: try again.");
  }
  if (button) button.disabled = false;
});

document.addEventListener("click", (event) => {
  const target = event.target;
  if (target.closest("[data-annotate]") || target.closest(".offer-annotate")) annotate();
  if (target.closest("[data-close]")) close(target.closest("details"));
  if (target.closest("[data-to-passage]")) goToPassage(target.closest("li"));
  const item = target.closest(".as-written") && !target.closest("a, button") && itemAt(event);
  if (item) goToItem(item);
});

// A click on a button must not take the selection away before it is read.
document.addEventListener("mousedown", (event) => {
  if (event.target.closest(".offer-annotate, [data-annotate]")) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const details = event.key === "Escape" && event.target.closest?.(".annotate[open], .remarking[open]");
  if (details) close(details);
});

let waiting = 0;
document.addEventListener("selectionchange", () => {
  clearTimeout(waiting);
  waiting = setTimeout(offerToAnnotate, 150);
});
document.addEventListener("scroll", () => { offer.hidden = true; }, { capture: true, passive: true });
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "workbench") showSpans();
});
// A block of code that was moved into its frame has left the ranges over its words behind.
let again = 0;
document.addEventListener("framed", () => {
  again ||= requestAnimationFrame(() => {
    again = 0;
    showSpans();
  });
});
showSpans();
