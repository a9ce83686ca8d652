// Signing out, and the browser's own time zone where another one is chosen.
import { forgetAll, unsent } from "./review/storage.js";

// What a person entered leaves this browser with them, sent or not.
document.querySelector("form[action$='sign-out']").addEventListener("submit", (event) => {
  const left = unsent();
  const asks = left && `${left} of your changes on the review page did not reach the server yet. Sign out and lose them?`;
  if (asks && !confirm(asks)) event.preventDefault();
  else forgetAll();
});

const offer = document.querySelector("[data-zone-for]");
const select = document.getElementById(offer.dataset.zoneFor);
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = [...select.options].some((option) => option.value === zone);

function show() {
  offer.hidden = !known || select.value === zone;
}

offer.querySelector("strong").textContent = zone.replaceAll("_", " ");
offer.querySelector("button").addEventListener("click", () => {
  select.value = zone;
  select.focus();
  show();
});
select.addEventListener("change", show);
show();
