// Small charts in rows and details. Text from the data only ever becomes text nodes.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function tipped(element, tip) {
  element.dataset.tip = tip;
  return element;
}

// Cut in the middle, so that long names with the same beginning differ.
function shortened(text, most) {
  if (text.length <= most) return text;
  const start = Math.max(Math.ceil(0.6 * (most - 1)), 1), end = most - 1 - start;
  return `${text.slice(0, start)}…${end > 0 ? text.slice(-end) : ""}`;
}

// A long name in two parts, of which the style cuts the first where there is no room for both.
function bothEnds(text) {
  return text.length > 10 ? [make("span", {}, text.slice(0, -6)), text.slice(-6)] : [text];
}

function sheet(width, height, label) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function rangeMark(column, low, high, row, width) {
  const [from, to] = column.domain, value = column.values[row];
  const svg = sheet(width, 16, "95% interval");
  if (value === null) return svg;
  const at = (v) => 5 + Math.min(Math.max((v - from) / (to - from || 1), 0), 1) * (width - 10);
  svg.append(shape("line", { x1: 5, x2: width - 5, y1: 8, y2: 8, class: "at-grid" }));
  const warn = column.warn ? column.warn[row] === 1 : column.limit !== undefined && (high?.values[row] ?? value) < column.limit; // as the verdict drop
  if (column.limit !== undefined) svg.append(shape("line", { x1: at(column.limit), x2: at(column.limit), y1: 2, y2: 14, class: "at-grid" }));
  if (low.values[row] !== null && high.values[row] !== null) {
    svg.append(shape("line", { x1: at(low.values[row]), x2: at(high.values[row]), y1: 8, y2: 8, class: warn ? "at-warn-range at-thick" : "at-range at-thick" }));
    svg.dataset.tip = `${shownOf(column, row)} (95% interval ${shownOf(low, row)} to ${shownOf(high, row)})`;
  }
  svg.append(shape("circle", { cx: at(value), cy: 8, r: 4, class: warn ? "at-warn" : "at-mark" }));
  return svg;
}

function barsMark(column, row, data) {
  const entries = entriesOf(column, row), n = data.categories.length, height = 30, width = Math.min(Math.max(n * 16, 64), 112);
  const total = entries.reduce((sum, [, v]) => sum + v, 0) || 1;
  const step = width / n, svg = sheet(width, height, column.title);
  svg.append(shape("line", { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: "at-grid" }));
  for (const [k, v] of entries) {
    const tall = Math.max((v / total) * (height - 2), 1);
    svg.append(shape("rect", { class: `at-k${data.colors[k]}`, x: k * step + Math.min(1, step / 8), y: height - 1 - tall, width: Math.max(step - Math.min(2, step / 4), 0.8), height: tall }));
  }
  const unit = column.key === "given" ? "" : "%";
  svg.dataset.tip = entries.slice().sort((a, b) => b[1] - a[1]).slice(0, 6).map(([k, v]) => `${data.categories[k]}: ${v}${unit}`).join(" · ");
  return svg;
}

function matrixMark(column, row, data, side = 36, named = false) {
  const n = column.size, cells = column.values.slice(row * n * n, (row + 1) * n * n);
  const left = named ? 110 : 0, top = named ? 46 : 0, step = named ? Math.min(46, 420 / n) : side / n;
  const svg = sheet(left + step * n + 1, top + step * n + 1, "labels given against labels recovered");
  for (let k = 0; k < n; k++) {
    const total = cells.slice(k * n, (k + 1) * n).reduce((a, b) => a + b, 0);
    for (let g = 0; g < n; g++) {
      const count = cells[k * n + g], share = total ? count / total : 0;
      const gap = named ? 2 : 0.6;
      const square = shape("rect", { class: "at-heat", x: left + g * step + gap / 2, y: top + k * step + gap / 2, width: step - gap, height: step - gap, "fill-opacity": (0.07 + 0.93 * share).toFixed(2) });
      svg.append(square);
      if (named) {
        tipped(square, `recovered ${data.bins[k]}, given ${data.bins[g]}: ${count.toLocaleString("en")} (${Math.round(100 * share)}% of the row)`);
        const dark = share > 0.5 ? "at-on-heat" : "at-tick";
        svg.append(shape("text", { class: `${dark} at-count`, x: left + (g + 0.5) * step, y: top + (k + 0.5) * step + 4, "text-anchor": "middle" }, count.toLocaleString("en")));
      }
    }
    if (named) {
      svg.append(shape("text", { class: "at-text", x: left - 8, y: top + (k + 0.5) * step + 4, "text-anchor": "end" }, shortened(data.bins[k], 14)));
      svg.append(shape("text", { class: "at-text", x: left + (k + 0.5) * step, y: top - 8, "text-anchor": "middle" }, shortened(data.bins[k], Math.max(Math.floor(step / 7), 2))));
    }
  }
  if (named) {
    svg.append(shape("text", { class: "at-tick", x: left, y: 14 }, "label given →"));
    svg.append(shape("text", { class: "at-tick", x: left - 8, y: 14, "text-anchor": "end" }, "recovered ↓"));
  } else {
    const right = cells.reduce((sum, count, i) => sum + (i % (n + 1) === 0 ? count : 0), 0);
    const all = cells.reduce((a, b) => a + b, 0);
    svg.dataset.tip = `${right.toLocaleString("en")} of ${all.toLocaleString("en")} labels on the diagonal`;
  }
  return svg;
}

const IRREGULAR = /^(irregular|random|repeated|inverted|mixed|always|favours)/;
const TAGGED = new Set(["status", "verdict", "behavior"]);
const TONES = { drop: " bad", divided: " bad", keep: " good", "needs no more labels": " good", "known truth": " good", serious: " good" };

function categoryMark(category, data) {
  const chip = shape("svg", { width: 12, height: 12, class: "chip", "aria-hidden": "true" }, shape("rect", { width: 12, height: 12, rx: 3, class: `at-k${data.colors[category]}` }));
  return make("span", { class: "cell" }, chip, make("span", {}, data.categories[category]));
}

function wordMark(column, row, data) {
  if (column.colored) return categoryMark(column.values[row], data);
  const word = shownOf(column, row);
  if (!TAGGED.has(column.key)) return tipped(make("span", {}, word), word);
  const tone = TONES[word] ?? (IRREGULAR.test(word) ? " bad" : "");
  return make("span", { class: `tag${tone}` }, word);
}

// A table of any length: only the rows in view are in the document.
const ROW = 45, SPARE = 8, LEFT = 4, TALL = 560, NARROW = 640, PRINTED = 30;
const WIDTHS = { id: 140, range: 164, matrix: 70, bars: 126, number: 70, share: 70, count: 70, word: 122, flag: 70, content: 240, decision: 98 };
const NARROW_WIDTHS = { ...WIDTHS, id: 84, range: 144, matrix: 60, bars: 96 };
const SCROLLBAR = 18; // with the border, in pixels
const SHEET = 700; // the width of a page of A4, in pixels
const RIGHT = new Set(["number", "share", "count"]);
const REASONS = new Set(["why", "reason", "evidence"]);

// Numbers get room for their heading, short texts no more than they need.
function widthOf(column, narrow) {
  const usual = (narrow ? NARROW_WIDTHS : WIDTHS)[column.kind], heading = (narrow ? 32 + 7.6 * column.title.length : 44 + 7.2 * column.title.length);
  if (narrow && column.key === "expectation") return heading; // the score without its interval
  if (RIGHT.has(column.kind) || column.kind === "flag" || column.kind === "matrix") return Math.max(usual, heading);
  const longest = (column.names ?? []).reduce((most, name) => Math.max(most, name.length), 0);
  if (TAGGED.has(column.key)) return Math.max(heading, Math.min(40 + 7 * longest, narrow ? 112 : 190));
  if (REASONS.has(column.key)) return Math.min(46 + 6.5 * longest, narrow ? 200 : 270);
  if (column.colored) return Math.max(heading, Math.min(usual, (narrow ? 36 : 50) + 8 * longest));
  return Math.max(heading, usual);
}

// The widths of columns. If they are a little too wide, ids and texts of several lines get narrower, so
// that all fit; otherwise the table is scrolled.
function fitted(columns, room, narrow) {
  const widths = columns.map((column) => widthOf(column, narrow));
  const spare = columns.map((column, at) => (REASONS.has(column.key) ? Math.max(widths[at] - 180, 0) : column.kind === "id" ? Math.max(widths[at] - 96, 0) : 0));
  const total = (values) => values.reduce((a, b) => a + b, 0), excess = total(widths) - room;
  if (excess <= 0 || excess > total(spare)) return widths;
  return widths.map((width, at) => width - (spare[at] * excess) / total(spare));
}

// Of the columns, in their order, those of highest rank that have room.
function columnsThatFit(columns, room) {
  let left = room;
  const chosen = new Set(columns.slice().sort((a, b) => a.rank - b.rank).filter((column) => {
    left -= widthOf(column, true);
    return left >= 0;
  }));
  return columns.filter((column) => chosen.has(column));
}

function makeTable(host, name, table, data, openDetail) {
  const { byKey } = table;
  const state = { rows: [], sort: table.sort_by, descending: table.descending, query: "", picks: {}, printing: false };
  const search = make("input", { type: "search", placeholder: "Search", "aria-label": `Search ${name}` });
  const count = make("output", { "aria-live": "polite" });
  const csv = make("button", { type: "button", class: "csv" }, "CSV");
  const tools = make("div", { class: "tools" }, search);
  const head = make("tr", { "aria-rowindex": 1 }), body = make("tbody");
  const grid = make("table", { "aria-label": name }, make("colgroup"), make("thead", {}, head), body);
  const view = make("div", { class: "view", tabindex: 0, role: "region", "aria-label": `${name}, scrollable` }, grid);
  const selects = {};

  for (const column of table.columns) {
    if (column.hidden || REASONS.has(column.key) || !(column.kind === "flag" || (column.kind === "word" && column.names.length > 1 && column.names.length <= 24))) continue;
    const select = make("select", {}, make("option", { value: "" }, "all"));
    const words = column.kind === "flag" ? ["no", "yes"] : column.names;
    words.forEach((word, code) => select.append(make("option", { value: code }, word || "(none)")));
    select.addEventListener("change", () => { state.picks[column.key] = select.value; refresh(); });
    tools.append(make("label", {}, column.title, select));
    selects[column.key] = select;
  }
  const end = make("div", { id: `end-of-${name.toLowerCase().replace(/\W+/g, "-")}`, tabindex: -1 });
  tools.append(csv, count, make("a", { class: "skip-rows", href: `#${end.id}` }, "Skip the rows"));
  host.replaceChildren(tools, view, end);

  // Reasons name items and shares, which are not what a row is about.
  const searched = table.columns.filter((c) => c.kind === "id" || c.kind === "content" || (c.kind === "word" && !c.hidden && c.key !== "reason"));
  const numeric = (c) => !["id", "word", "content", "decision"].includes(c.kind);

  function keys(column) {
    if (column.kind === "matrix") return keys(byKey.matches);
    if (column.kind === "bars") return byKey.spread ? keys(byKey.spread) : column.lengths;
    if (column.kind === "word") {
      const order = column.names.map((_, i) => i);
      if (!column.colored) order.sort((a, b) => (column.names[a] < column.names[b] ? -1 : 1));
      const place = [];
      order.forEach((code, at) => { place[code] = at; });
      return column.values.map((code) => place[code]);
    }
    return column.values;
  }

  function refresh() {
    const query = state.query.trim().toLowerCase(), rows = [];
    const picks = Object.entries(state.picks).filter(([, v]) => v !== "").map(([key, v]) => [byKey[key].values, Number(v)]);
    for (let row = 0; row < table.rows; row++) {
      if (picks.some(([values, code]) => values[row] !== code)) continue;
      if (query && !searched.some((c) => textOf(c, row, data).toLowerCase().includes(query))) continue;
      rows.push(row);
    }
    const column = byKey[state.sort];
    if (column) {
      const values = keys(column), sign = state.descending ? -1 : 1, text = !numeric(column) && typeof values[0] === "string";
      const collator = new Intl.Collator("en", { numeric: true });
      const compare = text ? collator.compare : (a, b) => a - b;
      // Missing values come last in both orders.
      rows.sort((a, b) => {
        const x = values[a], y = values[b];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return sign * compare(x, y) || a - b;
      });
    }
    state.rows = rows;
    count.textContent = `${rows.length.toLocaleString("en")} of ${table.total.toLocaleString("en")}`;
    grid.setAttribute("aria-rowcount", rows.length + 1);
    view.scrollTop = 0;
    drawHead();
    drawRows();
  }

  function columnsShown() {
    const shown = table.columns.filter((c) => !c.hidden && !(state.printing && c.kind === "decision" && !c.values.some(Boolean))), width = host.clientWidth || innerWidth;
    if (state.printing) return columnsThatFit(shown, SHEET);
    return width < NARROW ? columnsThatFit(shown, width) : shown;
  }

  function drawHead() {
    const columns = columnsShown();
    head.replaceChildren(...columns.map((column, at) => {
      const button = make("button", { type: "button" }, column.title);
      if (column.help) button.dataset.tip = column.help;
      button.addEventListener("click", () => {
        // Numbers sort descending first. A second click reverses the order.
        state.descending = state.sort === column.key ? !state.descending : numeric(column);
        state.sort = column.key;
        refresh();
        head.children[at].firstChild.focus();
      });
      const cell = make("th", { scope: "col", class: classOf(column, at) }, state.printing ? column.title : button);
      if (column.key === state.sort) cell.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      return cell;
    }));
    const widths = fitted(columns, host.clientWidth - SCROLLBAR, narrow());
    grid.firstChild.replaceChildren(...widths.map((width) => {
      const col = make("col");
      col.style.width = `${width}px`;
      return col;
    }));
    grid.style.minWidth = state.printing ? "" : `${widths.reduce((a, b) => a + b, 0)}px`;
  }

  const narrow = () => state.printing || host.clientWidth < NARROW;
  const classOf = (column, at) => `${RIGHT.has(column.kind) ? "right" : ""}${at === 0 ? " first" : ""}`;

  function drawRows() {
    const columns = columnsShown(), n = state.rows.length;
    const tall = Math.max(view.clientHeight, TALL); // an empty table is not yet as tall as it will be
    const from = state.printing ? 0 : Math.max(0, Math.floor(view.scrollTop / ROW) - SPARE);
    const to = state.printing ? Math.min(n, PRINTED) : Math.min(n, Math.ceil((view.scrollTop + tall) / ROW) + SPARE);
    const parts = [];
    if (from > 0) parts.push(pad(from * ROW, columns.length));
    for (let at = from; at < to; at++) parts.push(drawRow(columns, state.rows[at], at));
    if (to < n && !state.printing) parts.push(pad((n - to) * ROW, columns.length));
    if (n === 0) parts.push(make("tr", {}, make("td", { class: "empty", colspan: columns.length }, table.total ? "Nothing matches. Clear the search or the filters." : "There are none.")));
    if (state.printing && n > PRINTED) parts.push(make("tr", {}, make("td", { class: "empty", colspan: columns.length }, `The first ${PRINTED} of ${n.toLocaleString("en")} rows; on a screen the page shows all of them.`)));
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr").getAttribute("aria-rowindex") : null;
    body.replaceChildren(...parts);
    state.drawn = [from, to];
    // Or the Tab key would begin again at the first row that is drawn, and never leave the table.
    if (focused !== null) (body.querySelector(`tr[aria-rowindex="${focused}"] button`) ?? view).focus({ preventScroll: true });
  }

  function pad(height, span) {
    const cell = make("td", { colspan: span });
    cell.style.height = `${height}px`;
    return make("tr", { class: "pad", "aria-hidden": "true" }, cell);
  }

  function drawRow(columns, row, at) {
    const line = make("tr", { "aria-rowindex": at + 2 });
    columns.forEach((column, place) => {
      const cell = make("td", { class: classOf(column, place) });
      if (place === 0 && openDetail) {
        const button = make("button", { type: "button", class: "open" }, ...bothEnds(shownOf(column, row)));
        button.addEventListener("click", () => {
          if (table.opens) openDetail(data.tables[table.opens_in], table.opens[row], state.rows.map((each) => table.opens[each]));
          else openDetail(table, row, state.rows);
        });
        button.dataset.tip = shownOf(column, row);
        cell.append(button);
      } else if (column.kind === "range" && !(narrow() && column.key === "expectation")) {
        cell.append(make("span", { class: "cell" }, rangeMark(column, byKey[column.ends[0]], byKey[column.ends[1]], row, narrow() ? 76 : 110), shownOf(column, row)));
      } else if (column.kind === "matrix") cell.append(matrixMark(column, row, data));
      else if (column.kind === "bars") cell.append(barsMark(column, row, data));
      else if (column.kind === "word") cell.append(REASONS.has(column.key) ? tipped(make("div", { class: "wrapped" }, shownOf(column, row)), shownOf(column, row)) : wordMark(column, row, data));
      else if (column.kind === "decision") cell.append(state.printing ? DECISIONS[column.values[row]] : column.control(row));
      else if (column.kind === "content") cell.append(make("div", { class: "wrapped" }, shownOf(column, row).slice(0, 200)));
      else cell.append(shownOf(column, row));
      line.append(cell);
    });
    return line;
  }

  let waiting;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { state.query = search.value; refresh(); }, 120); });
  view.addEventListener("scroll", () => {
    // Some rows beyond the view are drawn too; draw again before these run out, or the Tab key would skip the others.
    const first = Math.floor(view.scrollTop / ROW), last = Math.ceil((view.scrollTop + view.clientHeight) / ROW);
    const [from, to] = state.drawn;
    if ((from > 0 && first < from + LEFT) || (to < state.rows.length && last > to - LEFT)) drawRows();
  }, { passive: true });
  csv.addEventListener("click", () => download(`${name.toLowerCase()}.csv`, csvOf(table.columns.map((c) => c.key), state.rows.map((row) => table.columns.map((c) => textOf(c, row, data)))), "text/csv"));
  let width = host.clientWidth;
  new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; drawHead(); drawRows(); } }).observe(host);
  addEventListener("beforeprint", () => { state.printing = true; drawHead(); drawRows(); });
  addEventListener("afterprint", () => { state.printing = false; drawHead(); drawRows(); });

  refresh();
  return {
    tools, redraw: drawRows,
    pick(key, word) {
      const select = selects[key];
      if (!select) return;
      select.value = String((byKey[key].names ?? ["no", "yes"]).indexOf(word));
      state.picks = { [key]: select.value };
      search.value = state.query = "";
      for (const other of Object.values(selects)) if (other !== select) other.value = "";
      refresh();
      host.closest("section").scrollIntoView();
      view.focus({ preventScroll: true });
    },
  };
}
