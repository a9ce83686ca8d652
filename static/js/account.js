// Clears stored work on sign-out, and offers the browser's time zone.
import { clearAll, unsentCount } from "./review/storage.js";

// Signing out removes a user's input from this browser, sent or not.
document.querySelector("form[action$='sign-out']").addEventListener("submit", (event) => {
  const count = unsentCount();
  const question = `${count} of your changes on the review page did not reach the server yet. Sign out and lose them?`;
  if (count && !confirm(question)) event.preventDefault();
  else clearAll();
});

const offer = document.querySelector("[data-zone-for]");
const select = document.getElementById(offer.dataset.zoneFor);
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = [...select.options].some((option) => option.value === zone);

function showOffer() {
  offer.hidden = !known || select.value === zone;
}

offer.querySelector("strong").textContent = zone.replaceAll("_", " ");
offer.querySelector("button").addEventListener("click", () => {
  select.value = zone;
  select.focus();
  showOffer();
});
select.addEventListener("change", showOffer);
showOffer();
