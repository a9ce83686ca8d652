// The state of the page, and small helpers for its elements.

export const find = (selector, root = document) => root.querySelector(selector);

// Data that stays while comparisons change: data-person, data-evaluation, data-next-url, …
export const pageData = () => find("#review-page").dataset;
export const comparison = () => find("#comparison")?.dataset.comparison;
export const isSingle = () => !find("#side-b"); // one response, without letters
export const panel = () => find("#panel");
export const stage = () => panel()?.dataset.stage;
export const rubric = (root = document) => find("#choices [name=rubric]", root)?.value;
export const version = () => find("#choices [name=version]")?.value;

export const WIDE_SCREEN = matchMedia("(min-width: 62rem)"); // here the panes scroll, not the window

export const announce = (message) => {
  const status = find("#status");
  if (status) status.textContent = message;
};

export const scrollIntoView = (part) => part?.scrollIntoView({ block: "nearest" });

// Identifies this tab; not a secret. crypto.randomUUID needs HTTPS.
export const tab = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// The CSRF token, where htmx reads it too.
export const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
export const replaceToken = (fresh) => {
  document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": fresh }));
  for (const field of document.querySelectorAll("[name=csrfmiddlewaretoken]")) field.value = fresh;
};

export const parseHtml = (html) => new DOMParser().parseFromString(html, "text/html");

export const pluralize = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
