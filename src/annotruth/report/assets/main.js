// Theme first, so that nothing flashes; then the tables.
async function start() {
  applyKeptTheme();
  themeButton();
  saveButtons();
  tipsOfCharts();
  showTips();
  bringFocused();
  followSections();
  let data;
  try { data = await readData(); } catch (error) {
    for (const host of document.querySelectorAll("[data-table]")) host.textContent = `The tables cannot be read by this browser (${error.message}). A current Firefox, Chrome, Edge or Safari can.`;
    return;
  }
  for (const [name, table] of Object.entries(data.tables)) {
    table.name = name;
    table.byKey = Object.fromEntries(table.columns.map((c) => [c.key, withStarts(c)]));
  }
  const { items, annotators } = data.tables, tables = {};
  const people = annotators ?? data.tables.people, decision = people && addDecisions(people, !items);
  let votes;
  const openDetail = items && makeDetail(data, () => (votes ??= readData(1).then((read) => (data.ranking ? makeComparisons(read) : makeVotes(read, items, annotators)))));
  for (const host of document.querySelectorAll("[data-table]")) {
    tables[host.dataset.table] = makeTable(host, host.dataset.title, data.tables[host.dataset.table], data, openDetail);
  }
  if (decision) decisionsButton(decision, people, tables[people.name]);
  for (const button of document.querySelectorAll("[data-show]")) {
    const [table, key, word] = button.dataset.show.split("|");
    button.addEventListener("click", () => tables[table].pick(key, word));
  }
  // Buttons elsewhere on the page that open a row by its id, such as data-open="items|983".
  for (const button of document.querySelectorAll("[data-open]")) {
    const [name, ...id] = button.dataset.open.split("|"), table = data.tables[name];
    const row = table.columns[0].values.findIndex((value) => String(value) === id.join("|"));
    if (row < 0) button.disabled = true;
    else button.addEventListener("click", () => openDetail(table, row));
  }
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
}

start();
