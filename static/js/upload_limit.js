// Rejects files that are too large before they are uploaded.
const input = document.querySelector("input[type=file][data-max-bytes]");
input?.addEventListener("change", (event) => {
  const maxBytes = Number(input.dataset.maxBytes);
  const tooLarge = [...input.files].find((file) => file.size > maxBytes);
  const maxMegabytes = Math.floor(maxBytes / 1024 / 1024);
  input.setCustomValidity(tooLarge ? `${tooLarge.name} is larger than ${maxMegabytes} MB, the limit of this server.` : "");
  if (!input.reportValidity()) event.stopPropagation();
});
