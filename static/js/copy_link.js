// Copies a sign-in link, or selects it where there is no clipboard (plain HTTP).
const button = document.querySelector("[data-copy]");
const link = document.getElementById(button.dataset.copy);
button.hidden = false;
link.addEventListener("focus", () => link.select());
button.addEventListener("click", async () => {
  link.select();
  await navigator.clipboard?.writeText(link.value);
  document.querySelector("[data-copied]").hidden = !navigator.clipboard;
});
