// Rejects a file that is too large before it is uploaded.
const file = document.querySelector("input[type=file][data-max-bytes]");
file.addEventListener("change", () => {
  const maxBytes = Number(file.dataset.maxBytes);
  const isTooLarge = file.files[0]?.size > maxBytes;
  const maxMegabytes = Math.floor(maxBytes / 1024 / 1024);
  file.setCustomValidity(isTooLarge ? `The file is larger than ${maxMegabytes} MB, the most that this server takes.` : "");
  file.reportValidity();
});
