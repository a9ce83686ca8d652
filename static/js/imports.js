// Dropped files, upload progress, and cards that stay as they are while somebody edits them.
const form = document.getElementById("upload");
const input = document.getElementById("id_file");
const progress = document.getElementById("upload-progress");

if (form) {
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      form.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    form.classList.remove("over");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  form.addEventListener("htmx:beforeRequest", () => {
    progress.removeAttribute("value");
    progress.hidden = false;
  });
  form.addEventListener("htmx:xhr:progress", (event) => {
    if (event.detail.lengthComputable) progress.value = event.detail.loaded / event.detail.total;
  });
  form.addEventListener("htmx:afterRequest", () => {
    progress.hidden = true;
    form.reset();
  });
}

// Progress is not fetched while a field of a card has the focus: what is typed would be lost.
document.addEventListener("htmx:beforeRequest", (event) => {
  const isPoll = event.detail.elt.id === "batch";
  const active = document.activeElement;
  if (isPoll && active?.closest("#cards") && active.matches("input:not([type=radio]), select, textarea")) event.preventDefault();
});
