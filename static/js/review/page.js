// What the page says of itself: whose it is, which comparison it shows, and in which state.

export const one = (selector, root = document) => root.querySelector(selector);

// Things of the page that stay while comparisons change: data-person, data-evaluation, data-ahead, …
export const desk = () => one("#desk").dataset;
export const comparison = () => one("#workbench")?.dataset.comparison;
export const panel = () => one("#panel");
export const stage = () => panel()?.dataset.stage;
export const rubric = (root = document) => one("#choices [name=rubric]", root)?.value;
export const version = () => one("#choices [name=version]")?.value;

export const WIDE = matchMedia("(min-width: 62rem)"); // the parts of the page scroll, not the window

export const say = (words) => {
  const status = one("#status");
  if (status) status.textContent = words;
};

export const show = (part) => part?.scrollIntoView({ block: "nearest" });

// This page among all that are open. No secret; crypto.randomUUID is not there without HTTPS.
export const tab = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// The token against forged requests stands where htmx takes it from too.
export const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
export const takeToken = (fresh) => {
  document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": fresh }));
  for (const field of document.querySelectorAll("[name=csrfmiddlewaretoken]")) field.value = fresh;
};

export const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

export const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
