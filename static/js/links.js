// Links in responses: the first click activates one and shows its address, the second opens it.

const prepare = (root) => {
  for (const link of root.querySelectorAll(".rendered a.link")) {
    link.tabIndex = 0;
    link.role = "link";
    link.title = `Not opened by accident: click twice to open ${link.dataset.address}`;
  }
};

const activate = (link) => {
  if (!/^https?:\/\//i.test(link.dataset.address)) return;
  link.href = link.dataset.address;
  link.target = "_blank";
  link.rel = "noopener nofollow noreferrer";
};

const handleActivation = (event) => {
  const link = event.target.closest?.(".rendered a.link:not([href])");
  if (!link || (event.type === "keydown" && event.key !== "Enter")) return;
  event.preventDefault();
  activate(link);
};

document.addEventListener("click", handleActivation);
document.addEventListener("keydown", handleActivation);
document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
