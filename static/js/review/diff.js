// Fetches the word diff once per comparison, when it is first shown.

let requestedAddress = ""; // of the diff being loaded or already shown

const sides = () => [...document.querySelectorAll("#comparison .side")];

const insert = (side, part) => {
  side.querySelector(".side-body .word-diff")?.remove();
  side.querySelector(".original-text").after(part);
};

const noticePart = (message) => {
  const part = document.createElement("div");
  part.className = "word-diff";
  part.append(Object.assign(document.createElement("p"), { className: "notice", textContent: message }));
  return part;
};

const fetchDiff = async (address) => {
  const response = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
};

// Resolves when the diff or an error message is shown.
export const loadDiff = async () => {
  const address = document.querySelector("[data-toggle=diff]")?.dataset.address;
  if (!address || requestedAddress === address || document.querySelector("#comparison .word-diff")) return;
  requestedAddress = address;
  try {
    const parts = await fetchDiff(address);
    for (const side of sides()) {
      const part = parts.querySelector(`[data-diff-side=${side.dataset.side}]`);
      if (part && document.querySelector("[data-toggle=diff]")?.dataset.address === address) insert(side, document.adoptNode(part));
    }
  } catch {
    for (const side of sides()) insert(side, noticePart("The differences could not be fetched. Press the button twice to try again."));
    requestedAddress = "";
  }
};

// Lets the next toggle fetch the diff again after a failure.
export const clearFailure = () => {
  if (requestedAddress) return;
  for (const part of document.querySelectorAll("#comparison .word-diff")) part.remove();
};
