// Time on task: it runs while the page is seen and something was done lately, for the comparison that is shown.

import { one } from "./page.js";

const IDLE_AFTER = 30_000;
const TICK = 1000;
const LONGEST_TICK = 2 * TICK; // a machine that slept did not work

let active = 0;
let touched = performance.now();
let counted = performance.now();

const count = () => {
  const now = performance.now();
  if (!document.hidden && now - touched < IDLE_AFTER) active += Math.min(now - counted, LONGEST_TICK);
  counted = now;
};

export const spent = () => {
  count();
  return Math.round(active);
};

// From what a draft has counted already.
export const begin = () => {
  count();
  active = Number(one("#choices [name=active_ms]")?.value ?? 0);
};

export const start = () => {
  for (const kind of ["keydown", "pointerdown", "pointermove", "scroll", "wheel", "touchstart"]) {
    document.addEventListener(kind, () => { touched = performance.now(); }, { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => { counted = performance.now(); });
  setInterval(count, TICK);
};
