// Light or dark: what the machine says, until a person says otherwise. Runs before the page is drawn.
const KEY = "pdt-theme";
const kept = localStorage.getItem(KEY);
if (kept) document.documentElement.dataset.theme = kept;

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme")?.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(KEY, root.dataset.theme);
  });
});
