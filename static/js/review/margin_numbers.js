// Shows the number of each annotation next to its first line, as a button that leads to its comment.

const TARGET_PX = 24; // the smallest touch target

let numbers = [];

const createButton = (item, number, goTo) => {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "annotation-number", textContent: number });
  const letter = item.closest(".side").querySelector(".letter")?.textContent ?? "the response";
  button.ariaLabel = `Annotation ${number} in ${letter}`;
  button.title = item.querySelector(".annotation-comment")?.textContent ?? "";
  button.addEventListener("click", () => goTo(item));
  item.closest(".side").querySelector(".original-text").after(button);
  return button;
};

// The number is at the ragged edge of the text, which is the left one in right-to-left writing. Numbers of the same
// line are stacked; a number in a part that is still collapsed is hidden.
const position = () => {
  const nextTop = new Map();
  for (const { button, range } of numbers) {
    const body = button.parentElement;
    const line = range.getClientRects()[0];
    const end = body.querySelector(".original-text").getBoundingClientRect().bottom;
    button.hidden = !line || line.top >= end;
    if (button.hidden) continue;
    const middle = line.top - body.getBoundingClientRect().top + (line.height - TARGET_PX) / 2;
    const top = Math.max(middle, nextTop.get(body) ?? 0);
    nextTop.set(body, top + TARGET_PX);
    button.style.top = `${top}px`;
    button.classList.toggle("of-rtl", range.startContainer.parentElement.closest(".rendered > *").matches(":dir(rtl)"));
  }
};

const observer = new ResizeObserver(position);

// `passages` are { item, number, range } in the order of the text.
export const drawNumbers = (passages, goTo) => {
  for (const { button } of numbers) button.remove();
  observer.disconnect();
  // Insert in reverse, so that Tab visits them in the order of the text.
  numbers = passages.toReversed().map(({ item, number, range }) => ({ range, button: createButton(item, number, goTo) })).reverse();
  for (const text of document.querySelectorAll("#comparison .original-text")) observer.observe(text);
  position();
};
