// Suggests members after @ in a comment, to pick by key, mouse or touch.

const field = document.querySelector("#discussion textarea");
const readers = [...document.querySelectorAll("#discussion [data-reader]")].map(({ dataset }) => dataset);
const MENTION = /(?<![\p{L}\p{N}_.@+-])@([\p{L}\p{N}_.@+-]*)$/u; // as the server parses it, up to the caret

// A textarea may not have the role combobox, but it may have the ARIA properties of a text box.
const list = document.createElement("ul");
Object.assign(list, { id: "mention-options", className: "mention-options", role: "listbox", hidden: true });
list.ariaLabel = "People to mention";

let active = 0; // index of the highlighted option

const typedName = () => MENTION.exec(field.value.slice(0, field.selectionEnd))?.[1];

const highlight = (index) => {
  const options = [...list.children];
  active = (index + options.length) % options.length;
  for (const option of options) option.ariaSelected = option === options[active];
  field.setAttribute("aria-activedescendant", options[active].id);
  options[active].scrollIntoView({ block: "nearest" });
};

const close = () => {
  list.hidden = true;
  field.removeAttribute("aria-activedescendant");
};

const pick = (option = list.children[active]) => {
  const end = field.selectionEnd;
  field.setRangeText(`${option.dataset.name} `, end - typedName().length, end, "end");
  close();
};

const optionOf = ({ reader, name }, index) => {
  const option = document.createElement("li");
  Object.assign(option, { id: `mention-option-${index}`, role: "option" });
  option.dataset.name = reader;
  option.append(Object.assign(document.createElement("span"), { className: "mono", textContent: `@${reader}` }));
  const fullName = Object.assign(document.createElement("span"), { className: "muted", textContent: name });
  if (name !== reader) option.append(fullName);
  return option;
};

const hasPrefix = (names, prefix) => names.toLowerCase().split(/\s+/).some((name) => name.startsWith(prefix));

const suggest = () => {
  const prefix = typedName()?.toLowerCase();
  const matches = prefix === undefined ? [] : readers.filter(({ reader, name }) => hasPrefix(`${reader} ${name}`, prefix));
  if (!matches.length || (matches.length === 1 && matches[0].reader.toLowerCase() === prefix)) return close();
  list.replaceChildren(...matches.map(optionOf));
  list.style.top = `${field.offsetTop + field.offsetHeight}px`;
  list.hidden = false;
  highlight(0);
};

const KEYS = {
  ArrowDown: () => highlight(active + 1),
  ArrowUp: () => highlight(active - 1),
  Enter: () => pick(),
  Tab: () => pick(),
  Escape: close,
};

const handleKeydown = (event) => {
  if (list.hidden || event.isComposing || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
};

if (field) {
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.after(list);
  field.addEventListener("input", suggest);
  field.addEventListener("keydown", handleKeydown);
  field.addEventListener("blur", close);
  document.addEventListener("selectionchange", () => list.hidden || typedName() !== undefined || close());
  list.addEventListener("mousedown", (event) => event.preventDefault()); // keep the caret in the field
  list.addEventListener("click", (event) => event.target.closest("li") && pick(event.target.closest("li")));
}
