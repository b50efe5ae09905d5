// Theme first, so that nothing flashes; then the tables.
function themeButton() {
  const root = document.documentElement, button = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const keep = (theme) => { try { localStorage.setItem("annotruth-theme", theme); } catch { /* private windows forbid it */ } };
  try { const kept = localStorage.getItem("annotruth-theme"); if (kept) root.dataset.theme = kept; } catch { /* as above */ }
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; keep(root.dataset.theme); });
}

async function start() {
  themeButton();
  tipsOfCharts();
  showTips();
  let data;
  try { data = await readData(); } catch (error) {
    for (const host of document.querySelectorAll("[data-table]")) host.textContent = `The tables cannot be read by this browser (${error.message}). A current Firefox, Chrome, Edge or Safari can.`;
    return;
  }
  saveButtons(data);
  const openDetail = makeDetail(data), tables = {};
  for (const host of document.querySelectorAll("[data-table]")) {
    const name = host.dataset.table;
    tables[name] = makeTable(host, host.dataset.title, data.tables[name], data, openDetail);
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    const [table, key, word] = button.dataset.show.split("|");
    button.addEventListener("click", () => tables[table].pick(key, word));
  }
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
}

start();
