// The data: base64 of compressed JSON, columns rather than rows. The first part holds the tables, the
// second the labels, which are read when a row is opened.
async function readData(part = 0) {
  const text = document.getElementById("data").textContent.trim().split("\n")[part];
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Entries of a sparse column start where those of the rows before it end.
function withStarts(column) {
  if (column.kind !== "bars") return column;
  column.starts = new Uint32Array(column.lengths.length + 1);
  column.lengths.forEach((n, i) => { column.starts[i + 1] = column.starts[i] + n; });
  return column;
}

function entriesOf(column, row) {
  const entries = [];
  for (let i = column.starts[row]; i < column.starts[row + 1]; i++) {
    entries.push([column.categories[i], column.values[i]]);
  }
  return entries;
}

// The text of a cell: for sorting by text, searching and CSV.
function textOf(column, row, data) {
  const value = column.values[row];
  switch (column.kind) {
    case "word": return column.names[value];
    case "flag": return value ? "yes" : "no";
    case "decision": return DECISIONS[value];
    case "bars": return entriesOf(column, row).map(([k, v]) => `${data.categories[k]}: ${v}`).join("; ");
    case "matrix": return column.values.slice(row * column.size ** 2, (row + 1) * column.size ** 2).join(" ");
    default: return value === null ? "" : String(value);
  }
}

// What is decided about an annotator, and the verdict of it, as files for --drop have it.
const DECISIONS = ["", "pay", "look", "do not pay"], DECIDED = ["", "keep", "unsure", "drop"];

// What a cell shows.
function shownOf(column, row) {
  const value = column.values[row];
  if (value === null || value === undefined) return "–";
  switch (column.kind) {
    case "word": return column.names[value];
    case "flag": return value ? "yes" : "";
    case "share": return `${Math.round(100 * value)}%`;
    case "count": return value.toLocaleString("en");
    case "number":
    case "range": return value.toLocaleString("en", { minimumFractionDigits: column.digits, maximumFractionDigits: column.digits });
    default: return String(value);
  }
}

// Text that a spreadsheet would run as a formula gets a ' before it; labels/cells.py restores it.
const FORMULA = /^['"\x01-\x20\x7f\u00a0\ufeff]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NUMBER = /^[-+]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?$/;

function csvOf(names, rows) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (FORMULA.test(text) && !NUMBER.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Charts are drawn already; here they get buttons to save them.
const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "text-anchor"];

// A copy that looks the same anywhere: styles become attributes.
function standalone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const style = getComputedStyle(from[at]);
    for (const name of COPIED) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
    delete element.dataset.tip;
  });
  const ground = getComputedStyle(document.body).backgroundColor;
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: ground }));
  return new XMLSerializer().serializeToString(copy);
}

function saveButtons() {
  for (const figure of document.querySelectorAll("figure[data-name]")) {
    const name = figure.dataset.name;
    const drawn = () => [...figure.querySelectorAll("svg")].find((svg) => svg.checkVisibility?.() ?? svg.clientWidth);
    const actions = {
      PNG: () => {
        const svg = drawn(), image = new Image(), box = svg.viewBox.baseVal;
        image.onload = () => {
          const canvas = make("canvas", { width: 2 * box.width, height: 2 * box.height });
          canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
          canvas.toBlob((blob) => download(`${name}.png`, blob));
        };
        image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
      },
      SVG: () => download(`${name}.svg`, standalone(drawn()), "image/svg+xml"),
    };
    const save = figure.querySelector(".save");
    for (const [word, act] of Object.entries(actions)) {
      const button = make("button", { type: "button", "aria-label": `Save ${name} as ${word}` }, word);
      button.addEventListener("click", act);
      save.append(button);
    }
  }
}
