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
      const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
      svg.append(shape("text", { class: "at-text", x: left - 8, y: top + (k + 0.5) * step + 4, "text-anchor": "end" }, short(data.bins[k], 14)));
      svg.append(shape("text", { class: "at-text", x: left + (k + 0.5) * step, y: top - 8, "text-anchor": "middle" }, short(data.bins[k], Math.max(Math.floor(step / 7), 2))));
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
