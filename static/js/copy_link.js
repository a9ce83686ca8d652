// Copies a link, or all links of the page with their names. Without a clipboard (plain HTTP) a single link is selected.
const status = document.querySelector("[data-copied]");

async function copy(text) {
  await navigator.clipboard?.writeText(text);
  if (status) status.hidden = !navigator.clipboard;
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const link = document.getElementById(button.dataset.copy);
  button.hidden = false;
  link.addEventListener("focus", () => link.select());
  button.addEventListener("click", () => {
    link.select();
    copy(link.value);
  });
}

const all = document.querySelector("[data-copy-all]");
if (all && navigator.clipboard) {
  all.hidden = false;
  all.addEventListener("click", () => {
    const links = [...document.querySelectorAll("[data-for]")];
    copy(links.map((link) => `${link.dataset.for}\t${link.value}`).join("\n"));
  });
}
