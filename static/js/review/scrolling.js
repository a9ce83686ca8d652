// The two responses scroll on their own, or together: each as far along as the other.

import { look } from "./looks.js";

const NEAR = 2; // pixels; browsers round what they are told

const sides = () => [...document.querySelectorAll("#workbench .side")];
const room = (pane) => pane.scrollHeight - pane.clientHeight;
const scrolls = (pane) => room(pane) > NEAR && getComputedStyle(pane).overflowY === "auto";

let last = null; // the response that was last scrolled, pointed at or focused
const told = new WeakMap(); // where a pane was put by us: its event is not the person's

// What comes into sight is laid out only then, and its room changes: so it is looked at again a frame later.
const follow = (leader, frames = 2) => {
  if (!look("sync")) return;
  if (frames) requestAnimationFrame(() => last === leader && follow(leader, frames - 1));
  const share = leader.scrollTop / Math.max(room(leader), 1);
  for (const other of sides()) {
    if (other === leader || !scrolls(other)) continue;
    const top = share * room(other);
    if (Math.abs(other.scrollTop - top) < NEAR) continue;
    other.scrollTop = top;
    told.set(other, other.scrollTop);
  }
};

document.addEventListener("scroll", (event) => {
  const pane = event.target;
  if (!pane.classList?.contains("side")) return;
  const expected = told.get(pane);
  told.delete(pane);
  if (expected !== undefined && Math.abs(pane.scrollTop - expected) < NEAR) return;
  last = pane;
  follow(pane);
}, { capture: true, passive: true });

for (const kind of ["pointerdown", "focusin"]) {
  document.addEventListener(kind, (event) => {
    last = event.target.closest?.(".side") ?? last;
  });
}

// What the keys scroll: the response last used, together the longer one, else the page.
const box = () => {
  const panes = sides().filter(scrolls);
  if (!panes.length) {
    const texts = document.querySelector("#texts");
    return texts.scrollHeight > texts.clientHeight + NEAR ? texts : document.scrollingElement;
  }
  if (!look("sync") && panes.includes(last)) return last;
  return panes.reduce((one, other) => (room(other) > room(one) ? other : one));
};

export const scrollTexts = (share) => {
  const found = box();
  found.scrollBy({ top: share * found.clientHeight });
};

// Where the panes stand is kept in proportion when what they hold grows or shrinks.
export const scrollAgain = () => {
  const leader = last?.isConnected ? last : sides()[0];
  last = leader;
  if (leader) follow(leader);
};

export const lastSide = () => (last?.isConnected ? last : sides()[0]);
