// Says before the upload, not after it, that a file is larger than the server takes.
const file = document.querySelector("input[type=file][data-most]");
file.addEventListener("change", () => {
  const most = Number(file.dataset.most);
  const tooLarge = file.files[0]?.size > most;
  file.setCustomValidity(tooLarge ? `The file is larger than ${Math.floor(most / 1024 / 1024)} MB, the most that this server takes.` : "");
  file.reportValidity();
});
