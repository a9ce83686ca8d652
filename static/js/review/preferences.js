// The view options of the texts, stored in this browser for each user.

const username = () => document.querySelector(".account")?.textContent.trim() ?? "";
const storageKey = () => `judgeweb.texts.${username()}`;
const DEFAULTS = { sync: true, expanded: false, diff: false, query: true, reference: false, guidelines: false, focus: false, instant: false };

const stored = () => {
  try {
    return JSON.parse(localStorage.getItem(storageKey())) ?? {};
  } catch {
    return {}; // no storage access, or no valid entry
  }
};

export const preference = (name) => stored()[name] ?? DEFAULTS[name];

export const setPreference = (name, value) => {
  try {
    localStorage.setItem(storageKey(), JSON.stringify({ ...stored(), [name]: value }));
  } catch {
    // without storage the option holds until the page is left
  }
};
