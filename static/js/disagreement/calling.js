// Whom a comment can call: after @ the readers of that name stand below it, taken by key, mouse or finger.

const field = document.querySelector("#discussion textarea");
const readers = [...document.querySelectorAll("#discussion [data-reader]")].map(({ dataset }) => dataset);
const CALL = /(?<![\p{L}\p{N}_.@+-])@([\p{L}\p{N}_.@+-]*)$/u; // as the server reads it, up to the caret

// A field of several lines may not have the role of a combobox: it says of itself what a text box may say.
const list = document.createElement("ul");
Object.assign(list, { id: "callable", className: "callable", role: "listbox", ariaLabel: "People to call", hidden: true });

let at = 0; // the place of the one that is meant

const written = () => CALL.exec(field.value.slice(0, field.selectionEnd))?.[1];

const mean = (place) => {
  const options = [...list.children];
  at = (place + options.length) % options.length;
  for (const option of options) option.ariaSelected = option === options[at];
  field.setAttribute("aria-activedescendant", options[at].id);
  options[at].scrollIntoView({ block: "nearest" });
};

const close = () => {
  list.hidden = true;
  field.removeAttribute("aria-activedescendant");
};

const take = (option = list.children[at]) => {
  const end = field.selectionEnd;
  field.setRangeText(`${option.dataset.name} `, end - written().length, end, "end");
  close();
};

const optionOf = ({ reader, name }, place) => {
  const option = document.createElement("li");
  Object.assign(option, { id: `callable-${place}`, role: "option" });
  option.dataset.name = reader;
  option.append(Object.assign(document.createElement("span"), { className: "mono", textContent: `@${reader}` }));
  if (name !== reader) option.append(Object.assign(document.createElement("span"), { className: "muted", textContent: name }));
  return option;
};

const begins = (words, word) => words.toLowerCase().split(/\s+/).some((one) => one.startsWith(word));

const offer = () => {
  const word = written()?.toLowerCase();
  const found = word === undefined ? [] : readers.filter(({ reader, name }) => begins(`${reader} ${name}`, word));
  if (!found.length || (found.length === 1 && found[0].reader.toLowerCase() === word)) return close();
  list.replaceChildren(...found.map(optionOf));
  list.style.top = `${field.offsetTop + field.offsetHeight}px`;
  list.hidden = false;
  mean(0);
};

const KEYS = {
  ArrowDown: () => mean(at + 1),
  ArrowUp: () => mean(at - 1),
  Enter: () => take(),
  Tab: () => take(),
  Escape: close,
};

const pressed = (event) => {
  if (list.hidden || event.isComposing || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
};

if (field) {
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.after(list);
  field.addEventListener("input", offer);
  field.addEventListener("keydown", pressed);
  field.addEventListener("blur", close);
  document.addEventListener("selectionchange", () => list.hidden || written() !== undefined || close());
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the caret stays where it is
  list.addEventListener("click", (event) => event.target.closest("li") && take(event.target.closest("li")));
}
