// The panel with the comparisons behind a number: htmx fills it, this closes it and moves the focus.
const panel = document.getElementById("side-panel");
let opener = null;

function close() {
  panel.replaceChildren();
  opener?.focus();
  opener = null;
}

if (panel) {
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === panel) opener = event.detail.elt;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === panel) panel.querySelector("h2")?.focus();
  });
  panel.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-panel]")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && panel.childElementCount) close();
  });
}
