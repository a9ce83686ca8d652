// Saves a role as soon as it is chosen.
for (const select of document.querySelectorAll("[data-saves]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
