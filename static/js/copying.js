// A “Copy” button in the corner of each block of code, which says what it did. Room for it is kept by the stylesheet.

const region = document.createElement("div");
region.className = "visually-hidden";
region.setAttribute("role", "status");
document.body.append(region);

const select = (block) => {
  const selection = getSelection();
  selection.removeAllRanges();
  selection.selectAllChildren(block);
};

// The clipboard is closed to pages without HTTPS: there the code is selected, for the reader's own keys.
const copied = async (block) => {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {
    select(block);
    return document.execCommand("copy");
  }
};

const tell = (button, words) => {
  const before = button.textContent;
  if (before !== "Copy") return;
  button.textContent = words;
  region.textContent = words === "Copied" ? "The code was copied." : "The code is selected: copy it by key.";
  setTimeout(() => {
    button.textContent = before;
    region.textContent = "";
  }, 3000);
};

const frame = (block) => {
  const box = document.createElement("div");
  const button = document.createElement("button");
  const { language } = block.dataset;
  box.className = "code-box";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.title = language ? `Copy this code (${language})` : "Copy this block";
  button.addEventListener("click", async () => tell(button, (await copied(block)) ? "Copied" : "Selected"));
  block.replaceWith(box);
  box.append(block, button);
  box.dispatchEvent(new Event("framed", { bubbles: true }));
};

// What scrolls sideways is reached by Tab, so that arrow keys can move it.
const reach = (wide) => {
  if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
};

const tend = (block) => {
  if (block.matches("pre") && !block.parentElement.matches(".code-box")) frame(block);
  reach(block);
};

// Looked at when it comes near: measuring what is out of sight would lay out all of a long text.
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    tend(target);
  }
}, { rootMargin: "400px" });

const AT_ONCE = 100;

const prepare = (root) => {
  const blocks = [...root.querySelectorAll(".rendered pre:not(.code-box > pre)")];
  if (blocks.length <= AT_ONCE) blocks.forEach(frame);
  for (const block of root.querySelectorAll(".rendered :is(pre, table, p.formula)")) near.observe(block);
};

document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
