// The words in which the responses differ: fetched once for a comparison, and only when they are to be seen.

const workbench = () => document.querySelector("#workbench");
let asked = ""; // the address of the diff that is on its way, or was refused

const sides = () => [...document.querySelectorAll("#workbench .side")];

const put = (side, part) => {
  side.querySelector(".side-body .diffed")?.remove();
  side.querySelector(".as-written").after(part);
};

const said = (words) => {
  const part = document.createElement("div");
  part.className = "diffed";
  part.append(Object.assign(document.createElement("p"), { className: "notice", textContent: words }));
  return part;
};

const fetched = async (address) => {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
};

// Resolves when the diff stands in its place, or the reason why it does not.
export const bringDiff = async () => {
  const address = document.querySelector("[data-toggle=diff]")?.dataset.address;
  if (!address || asked === address || workbench().querySelector(".diffed")) return;
  asked = address;
  try {
    const parts = await fetched(address);
    for (const side of sides()) {
      const part = parts.querySelector(`[data-diffed=${side.dataset.side}]`);
      if (part && document.querySelector("[data-toggle=diff]")?.dataset.address === address) put(side, document.adoptNode(part));
    }
  } catch {
    for (const side of sides()) put(side, said("The differences could not be fetched. Press the button twice to try again."));
    asked = "";
  }
};

// What could not be fetched is asked for again the next time.
export const forgetFailure = () => {
  if (asked) return;
  for (const part of document.querySelectorAll("#workbench .diffed")) part.remove();
};
