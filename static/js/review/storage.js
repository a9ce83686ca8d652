// What this browser keeps of a person's work, under a name that says whose it is.

const PREFIX = "judgeweb";
const memory = new Map(); // where the browser keeps nothing, or has no room left

const names = () => {
  try {
    return Object.keys(localStorage).filter((name) => name.startsWith(`${PREFIX} `));
  } catch {
    return [];
  }
};

export const nameOf = (what, person, evaluation) => [PREFIX, what, person, evaluation].join(" ");

export const read = (name) => {
  if (memory.has(name)) return memory.get(name);
  try {
    return JSON.parse(localStorage.getItem(name)) ?? [];
  } catch {
    return [];
  }
};

export const write = (name, list) => {
  try {
    if (list.length) localStorage.setItem(name, JSON.stringify(list));
    else localStorage.removeItem(name);
    memory.delete(name);
  } catch {
    memory.set(name, list);
  }
};

// One person's work is never sent as another's, nor left for them to read.
export const keepOnlyOf = (person) => {
  for (const name of names()) if (name.split(" ")[2] !== person) localStorage.removeItem(name);
};

export const forgetAll = () => names().forEach((name) => localStorage.removeItem(name));

export const unsent = () => names().filter((name) => name.startsWith(`${PREFIX} outbox `)).flatMap(read).length;
