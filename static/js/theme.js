// Switches between light and dark at once, and saves the choice in the account.

const form = document.querySelector("[data-theme-toggle]");
const root = document.documentElement;
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => root.dataset.theme === "dark" || (root.dataset.theme === "system" && systemIsDark.matches);

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const theme = isDark() ? "light" : "dark";
  root.dataset.theme = theme;
  const body = new FormData(form);
  body.set("theme", theme);
  fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => {}); // the page shows it already
});
