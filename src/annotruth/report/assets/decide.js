// Decisions on annotators: pay, look, or do not pay. They stay while the page is open and, where the
// browser keeps data of the page, afterwards; the CSV is what --drop reads.
function addDecisions(annotators, isAlwaysShown) {
  const kept = keptDecisions(), ids = annotators.columns[0].values, rows = annotators.rows;
  const column = {
    key: "decision", title: "Decision", kind: "decision", hidden: false, rank: isAlwaysShown ? 1 : 99, values: new Array(rows).fill(0),
    help: "your decision: it stays in this page, and Decisions saves it as CSV; --drop leaves out those whom you do not pay",
  };
  ids.forEach((id, row) => { column.values[row] = Math.max(DECISIONS.indexOf(kept.get(String(id)) ?? ""), 0); });
  column.control = (row) => {
    const select = make("select", { class: "decide", "aria-label": `Decision on ${ids[row]}` });
    DECISIONS.forEach((word, code) => select.append(make("option", { value: code }, word || "–")));
    const mark = () => select.toggleAttribute("data-decided", column.values[row] > 0);
    select.value = column.values[row];
    select.addEventListener("change", () => {
      column.values[row] = Number(select.value);
      kept.set(String(ids[row]), DECISIONS[column.values[row]]);
      keepDecisions(kept);
      mark();
      column.changed();
    });
    mark();
    return select;
  };
  annotators.columns.splice(annotators.columns.findIndex((c) => c.key === "verdict") + 1 || 1, 0, column);
  annotators.byKey.decision = column;
  return column;
}

function decisionsButton(column, annotators, table) {
  const button = make("button", { type: "button", class: "csv" }, "Decisions");
  const show = () => {
    const n = column.values.filter(Boolean).length;
    button.textContent = n ? `Decisions (${n.toLocaleString("en")})` : "Decisions";
    button.hidden = !n;
    if (document.querySelector("dialog[open]")) table.redraw(); // its row has the old one
  };
  button.addEventListener("click", () => {
    const rows = [];
    column.values.forEach((code, row) => { if (code) rows.push([annotators.columns[0].values[row], DECISIONS[code], DECIDED[code]]); });
    download("decisions.csv", csvOf(["annotator", "decision", "verdict"], rows), "text/csv");
  });
  column.changed = show;
  table.tools.querySelector(".csv").after(button);
  show();
}

// By the page's data: another fit has its own decisions. Where nothing can be kept, an empty map.
const DECISIONS_KEY = () => `annotruth-decisions-${document.getElementById("data").textContent.slice(-64)}`;

function keptDecisions() {
  try { return new Map(JSON.parse(localStorage.getItem(DECISIONS_KEY()) ?? "[]")); } catch { return new Map(); }
}

function keepDecisions(kept) {
  try { localStorage.setItem(DECISIONS_KEY(), JSON.stringify([...kept])); } catch { /* private windows forbid it */ }
}
