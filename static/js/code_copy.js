// Adds a “Copy” button to each code block; the stylesheet reserves its space.

const region = document.createElement("div");
region.className = "visually-hidden";
region.setAttribute("role", "status");
document.body.append(region);

const select = (block) => {
  const selection = getSelection();
  selection.removeAllRanges();
  selection.selectAllChildren(block);
};

// Without HTTPS there is no clipboard: the code is selected, so that the reader can copy it by key.
const copy = async (block) => {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {
    select(block);
    return document.execCommand("copy");
  }
};

const showResult = (button, result) => {
  const before = button.textContent;
  if (before !== "Copy") return;
  button.textContent = result;
  region.textContent = result === "Copied" ? "The code was copied." : "The code is selected: copy it by key.";
  setTimeout(() => {
    button.textContent = before;
    region.textContent = "";
  }, 3000);
};

const addButton = (block) => {
  const box = document.createElement("div");
  const button = document.createElement("button");
  const { language } = block.dataset;
  box.className = "code-box";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.title = language ? `Copy this code (${language})` : "Copy this block";
  button.addEventListener("click", async () => showResult(button, (await copy(block)) ? "Copied" : "Selected"));
  block.replaceWith(box);
  box.append(block, button);
  box.dispatchEvent(new Event("framed", { bubbles: true }));
};

// Tab reaches what scrolls sideways, so that arrow keys can scroll it.
const makeFocusable = (block) => {
  if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
};

const prepareBlock = (block) => {
  if (block.matches("pre") && !block.parentElement.matches(".code-box")) addButton(block);
  makeFocusable(block);
};

// Blocks are measured when near the viewport: measuring all of them would lay out a long text at once.
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    prepareBlock(target);
  }
}, { rootMargin: "400px" });

const MAX_IMMEDIATE = 100;

const prepare = (root) => {
  const blocks = [...root.querySelectorAll(".rendered pre:not(.code-box > pre)")];
  if (blocks.length <= MAX_IMMEDIATE) blocks.forEach(addButton);
  for (const block of root.querySelectorAll(".rendered :is(pre, table, p.formula)")) observer.observe(block);
};

document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
