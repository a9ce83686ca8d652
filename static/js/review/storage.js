// What this browser keeps of a person's work, under a name that says whose it is.

const PREFIX = "judgeweb";
const memory = new Map(); // entry → item, where the browser keeps nothing, or has no room left

const names = () => {
  try {
    return Object.keys(localStorage).filter((name) => name.startsWith(`${PREFIX} `));
  } catch {
    return [];
  }
};

export const nameOf = (what, person, evaluation) => [PREFIX, what, person, evaluation].join(" ");

// Each item has an entry of its own, so that no page writes over what another has just put there: pages see each
// other's writing late. They are told apart by when they were put.
const entriesOf = (name) => [...new Set([...names(), ...memory.keys()])].filter((entry) => entry.startsWith(`${name} `));

const kept = (entry) => {
  if (memory.has(entry)) return memory.get(entry);
  try {
    return JSON.parse(localStorage.getItem(entry));
  } catch {
    return null;
  }
};

// One that another page has taken out meanwhile is not there any more.
export const read = (name) => entriesOf(name).map(kept).filter(Boolean)
  .sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1));

let last = 0;

export const add = (name, id, item) => {
  last = Math.max(Date.now(), last + 1);
  const entry = `${name} ${id}`;
  const timed = { ...item, id, at: last };
  try {
    localStorage.setItem(entry, JSON.stringify(timed));
  } catch {
    memory.set(entry, timed);
  }
};

export const remove = (name, id) => {
  memory.delete(`${name} ${id}`);
  try {
    localStorage.removeItem(`${name} ${id}`);
  } catch {
    // it was in memory alone
  }
};

// One person's work is never sent as another's, nor left for them to read.
export const keepOnlyOf = (person) => {
  for (const name of names()) if (name.split(" ")[2] !== person) localStorage.removeItem(name);
};

export const forgetAll = () => names().forEach((name) => localStorage.removeItem(name));

export const unsent = () => entriesOf(`${PREFIX} outbox`).length;
