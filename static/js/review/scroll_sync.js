// Scrolls both responses in proportion, unless the reviewer scrolls them separately.

import { preference } from "./preferences.js";

const TOLERANCE_PX = 2; // browsers round scroll positions

const sides = () => [...document.querySelectorAll("#comparison .side")];
const scrollRange = (pane) => pane.scrollHeight - pane.clientHeight;
const isScrollable = (pane) => scrollRange(pane) > TOLERANCE_PX && getComputedStyle(pane).overflowY === "auto";

let last = null; // the response last scrolled, clicked or focused
const expectedTops = new WeakMap(); // positions set by this module, to ignore their scroll events

// Content is laid out when it comes into view, which changes the scroll range: so repeat a frame later.
const follow = (leader, frames = 2) => {
  if (!preference("sync")) return;
  if (frames) requestAnimationFrame(() => last === leader && follow(leader, frames - 1));
  const share = leader.scrollTop / Math.max(scrollRange(leader), 1);
  for (const other of sides()) {
    if (other === leader || !isScrollable(other)) continue;
    const top = share * scrollRange(other);
    if (Math.abs(other.scrollTop - top) < TOLERANCE_PX) continue;
    other.scrollTop = top;
    expectedTops.set(other, other.scrollTop);
  }
};

document.addEventListener("scroll", (event) => {
  const pane = event.target;
  if (!pane.classList?.contains("side")) return;
  const expected = expectedTops.get(pane);
  expectedTops.delete(pane);
  if (expected !== undefined && Math.abs(pane.scrollTop - expected) < TOLERANCE_PX) return;
  last = pane;
  follow(pane);
}, { capture: true, passive: true });

for (const kind of ["pointerdown", "focusin"]) {
  document.addEventListener(kind, (event) => {
    last = event.target.closest?.(".side") ?? last;
  });
}

// The element that keys scroll: the response last used, the longer one if both scroll together, or else the page.
const scrollTarget = () => {
  const panes = sides().filter(isScrollable);
  if (!panes.length) {
    const texts = document.querySelector("#texts");
    return texts.scrollHeight > texts.clientHeight + TOLERANCE_PX ? texts : document.scrollingElement;
  }
  if (!preference("sync") && panes.includes(last)) return last;
  return panes.reduce((longest, other) => (scrollRange(other) > scrollRange(longest) ? other : longest));
};

export const scrollTexts = (share) => {
  const target = scrollTarget();
  target.scrollBy({ top: share * target.clientHeight });
};

// Shows the last question of the prompt and the last turn of each response; a second time, the beginning of both.
export const jumpToAnswer = () => {
  const query = document.querySelector("#query .query-body");
  const jumps = [[query, query?.querySelector(".last-question")], ...sides().map((side) => [side, lastTurn(side)])];
  const open = jumps.filter(([, part]) => part?.checkVisibility());
  const back = open.every(([pane, part]) => !isScrollable(pane) || isAt(pane, part));
  last = null;
  for (const [pane, part] of open) {
    if (!back && part.previousElementSibling) pane.querySelector(".side-body.clamped")?.classList.add("expanded");
    if (isScrollable(pane)) pane.scrollTop = back ? 0 : pane.scrollTop + offsetIn(pane, part);
    expectedTops.set(pane, pane.scrollTop);
  }
  if (!open.some(([pane]) => isScrollable(pane))) lastTurn(sides()[0])?.scrollIntoView({ block: "start" });
};

const lastTurn = (side) => [...side.querySelectorAll(".turn")].filter((turn) => turn.checkVisibility()).at(-1);
const headHeight = (pane) => pane.querySelector(".side-head")?.offsetHeight ?? 0;
const offsetIn = (pane, part) => part.getBoundingClientRect().top - pane.getBoundingClientRect().top - headHeight(pane);
const isAt = (pane, part) =>
  Math.abs(offsetIn(pane, part)) < 2 * TOLERANCE_PX || scrollRange(pane) - pane.scrollTop < TOLERANCE_PX;

// Restores the proportion after the content of a pane grows or shrinks.
export const resync = () => {
  const leader = last?.isConnected ? last : sides()[0];
  last = leader;
  if (leader) follow(leader);
};

export const lastSide = () => (last?.isConnected ? last : sides()[0]);
