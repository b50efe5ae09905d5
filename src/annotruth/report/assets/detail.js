// The dialog of one row: every column, and its charts at a readable size.
function makeDetail(data) {
  const dialog = document.getElementById("detail"), place = dialog.lastElementChild;
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return (table, byKey, row) => {
    const [first, ...rest] = table.columns;
    const facts = make("dl", { class: "facts" });
    for (const column of rest) {
      if (column.kind === "matrix" || column.kind === "bars") continue;
      const shown = column.kind === "word" ? wordMark(column, row, data) : shownOf(column, row) || "no";
      facts.append(make("div", {}, make("dt", {}, column.title), make("dd", {}, shown)));
    }
    const parts = [make("p", { class: "over" }, first.title), make("h2", { id: "detail-title" }, shownOf(first, row)), facts];
    if (byKey.confusion) parts.push(matrixMark(byKey.confusion, row, data, 36, true));
    if (byKey.given) parts.push(sharesMark(byKey.distribution, byKey.given, row, data));
    place.replaceChildren(...parts);
    dialog.showModal();
  };
}

// Recovered distribution above, labels as given below, for the categories that have either.
function sharesMark(distribution, labels, row, data) {
  const given = new Map(entriesOf(labels, row));
  const recovered = distribution ? new Map(entriesOf(distribution, row)) : new Map();
  const all = [...given.values()].reduce((a, b) => a + b, 0);
  const shown = [...new Set([...given.keys(), ...recovered.keys()])].sort((a, b) => a - b);
  const width = 520, left = 130, tall = 34, top = 26, room = width - left - 130;
  const svg = sheet(width, top + shown.length * tall + 8, "recovered distribution and labels as given");
  if (distribution) svg.append(shape("rect", { class: "at-mark", x: left, y: 6, width: 10, height: 10 }), shape("text", { class: "at-tick", x: left + 16, y: 15 }, "recovered"));
  svg.append(shape("rect", { class: "at-given", x: left + 90, y: 6, width: 10, height: 10 }), shape("text", { class: "at-tick", x: left + 106, y: 15 }, "as given"));
  shown.forEach((k, at) => {
    const y = top + at * tall + 4, share = (100 * (given.get(k) || 0)) / all, name = data.categories[k];
    svg.append(shape("text", { class: "at-text", x: left - 10, y: y + 18, "text-anchor": "end" }, name.length > 17 ? `${name.slice(0, 16)}…` : name));
    if (distribution) svg.append(shape("rect", { class: `at-k${data.colors[k]}`, x: left, y: y + 2, height: 13, width: ((recovered.get(k) || 0) / 100) * room }));
    svg.append(shape("rect", { class: "at-given", x: left, y: y + 17, height: 8, width: (share / 100) * room }));
    const count = `${given.get(k) || 0} of ${all} labels`;
    svg.append(shape("text", { class: "at-tick", x: width, y: y + 18, "text-anchor": "end" }, distribution ? `${recovered.get(k) || 0}% · ${count}` : count));
  });
  return svg;
}
