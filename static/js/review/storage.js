// Unsent work in this browser, under keys that contain the user.

const PREFIX = "judgeweb";
const memory = new Map(); // entry → item, if storage is off or full

const storedKeys = () => {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(`${PREFIX} `));
  } catch {
    return [];
  }
};

export const keyPrefix = (kind, person, evaluation) => [PREFIX, kind, person, evaluation].join(" ");

// Each item has its own entry, so that tabs, which see each other's writes late, do not overwrite each other.
const entriesOf = (key) => [...new Set([...storedKeys(), ...memory.keys()])].filter((entry) => entry.startsWith(`${key} `));

const readEntry = (entry) => {
  if (memory.has(entry)) return memory.get(entry);
  try {
    return JSON.parse(localStorage.getItem(entry));
  } catch {
    return null;
  }
};

// Another tab may have removed an entry in the meantime.
export const read = (key) => entriesOf(key).map(readEntry).filter(Boolean)
  .sort((first, second) => first.at - second.at || (first.id < second.id ? -1 : 1));

let lastTime = 0;

export const add = (key, id, item) => {
  lastTime = Math.max(Date.now(), lastTime + 1);
  const entry = `${key} ${id}`;
  const stamped = { ...item, id, at: lastTime };
  try {
    localStorage.setItem(entry, JSON.stringify(stamped));
  } catch {
    memory.set(entry, stamped);
  }
};

export const remove = (key, id) => {
  memory.delete(`${key} ${id}`);
  try {
    localStorage.removeItem(`${key} ${id}`);
  } catch {
    // it was only in memory
  }
};

// One user's work is never sent as another's, nor left for them to read.
export const removeOthers = (person) => {
  for (const key of storedKeys()) if (key.split(" ")[2] !== person) localStorage.removeItem(key);
};

export const clearAll = () => storedKeys().forEach((key) => localStorage.removeItem(key));

export const unsentCount = () => entriesOf(`${PREFIX} outbox`).length;
