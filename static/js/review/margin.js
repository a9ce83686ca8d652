// Beside each marked passage its number, at the line where it begins: a button that leads to what was said of it.

const TALL = 24; // pixels: the least that a finger meets

let drawn = [];

const draw = (item, number, goTo) => {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "in-margin", textContent: number });
  button.ariaLabel = `Annotation ${number} in ${item.closest(".side").querySelector(".letter").textContent}`;
  button.title = item.querySelector(".remark")?.textContent ?? "";
  button.addEventListener("click", () => goTo(item));
  item.closest(".side").querySelector(".as-written").after(button);
  return button;
};

// Where the writing runs from right to left its ragged edge, which has room, is the left one. Two of one line stand
// one below the other; one of what is not unfolded yet is not there.
const place = () => {
  const free = new Map();
  for (const { button, range } of drawn) {
    const body = button.parentElement;
    const line = range.getClientRects()[0];
    const end = body.querySelector(".as-written").getBoundingClientRect().bottom;
    button.hidden = !line || line.top >= end;
    if (button.hidden) continue;
    const middle = line.top - body.getBoundingClientRect().top + (line.height - TALL) / 2;
    const top = Math.max(middle, free.get(body) ?? 0);
    free.set(body, top + TALL);
    button.style.top = `${top}px`;
    button.classList.toggle("of-rtl", range.startContainer.parentElement.closest(".rendered > *").matches(":dir(rtl)"));
  }
};

const seen = new ResizeObserver(place);

// `passages`: each an item of the list with its number and its range, in the order of the text, which is that of the list.
export const drawNumbers = (passages, goTo) => {
  for (const { button } of drawn) button.remove();
  seen.disconnect();
  // Each is put before the one drawn last, so that Tab meets them in the order of the text.
  drawn = passages.toReversed().map(({ item, number, range }) => ({ range, button: draw(item, number, goTo) })).reverse();
  for (const text of document.querySelectorAll("#workbench .as-written")) seen.observe(text);
  place();
};
