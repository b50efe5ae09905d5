// Light or dark: as the system says, or as the button was last set, which the browser keeps.
const ROOT = document.documentElement;

function applyKeptTheme() {
  try { const kept = localStorage.getItem("annotruth-theme"); if (kept) ROOT.dataset.theme = kept; } catch { /* private windows forbid it */ }
}

function themeButton() {
  const dark = () => (ROOT.dataset.theme ? ROOT.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const keep = (theme) => { try { localStorage.setItem("annotruth-theme", theme); } catch { /* as above */ } };
  document.getElementById("theme").addEventListener("click", () => { ROOT.dataset.theme = dark() ? "light" : "dark"; keep(ROOT.dataset.theme); });
}

