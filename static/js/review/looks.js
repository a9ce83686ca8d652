// How a person last chose to see the texts, kept in this browser for each person by themselves.

const person = () => document.querySelector(".account")?.textContent.trim() ?? "";
const place = () => `judgeweb.texts.${person()}`;
const BEGIN = { sync: true, expanded: false, diff: false, query: true, reference: false, guidelines: false };

const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(place())) ?? {};
  } catch {
    return {}; // storage is closed to us, or holds nothing of ours
  }
};

export const look = (name) => kept()[name] ?? BEGIN[name];

export const remember = (name, value) => {
  try {
    localStorage.setItem(place(), JSON.stringify({ ...kept(), [name]: value }));
  } catch {
    // a browser that keeps nothing still shows what was asked for, until the page is left
  }
};
