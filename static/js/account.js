// Offers the browser's own time zone where another one is chosen.
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
