// Measures active time on the comparison shown: while the page is visible and had input recently.

import { find } from "./page.js";

const IDLE_MS = 30_000;
const TICK_MS = 1000;
const MAX_TICK_MS = 2 * TICK_MS; // after sleep, do not count the gap

let active = 0;
let lastInput = performance.now();
let lastCount = performance.now();

const count = () => {
  const now = performance.now();
  if (!document.hidden && now - lastInput < IDLE_MS) active += Math.min(now - lastCount, MAX_TICK_MS);
  lastCount = now;
};

export const activeMilliseconds = () => {
  count();
  return Math.round(active);
};

// Continues from the time of the draft.
export const restore = () => {
  count();
  active = Number(find("#choices [name=active_ms]")?.value ?? 0);
};

export const start = () => {
  for (const kind of ["keydown", "pointerdown", "pointermove", "scroll", "wheel", "touchstart"]) {
    document.addEventListener(kind, () => { lastInput = performance.now(); }, { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => { lastCount = performance.now(); });
  setInterval(count, TICK_MS);
};
