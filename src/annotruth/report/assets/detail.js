// The dialog of one row: an item with its labels, or an annotator with theirs.
const LISTED = 14;

function makeDetail(data, readVotes) {
  const dialog = document.getElementById("detail"), place = dialog.lastElementChild, close = dialog.querySelector("form");
  const control = (text, label, act) => {
    const button = make("button", { type: "button", "aria-label": label }, text);
    button.addEventListener("click", act);
    return button;
  };
  const back = control("Back", "Back", () => { past.pop(); show(); });
  const previous = control("‹", "Previous", () => move(-1)), next = control("›", "Next", () => move(1));
  close.prepend(back, previous, next);
  // Where one is: the last of a list of {table, row, order}, with what led there before it.
  let past = [];

  function move(step) {
    const here = past.at(-1), at = here.order.indexOf(here.row) + step;
    if (at < 0 || at >= here.order.length) return;
    here.row = here.order[at];
    show();
  }

  async function show() {
    const { table, row, order } = past.at(-1), at = order.indexOf(row), votes = await readVotes();
    // What has the focus may be replaced or hidden below.
    const lost = place.contains(document.activeElement) || document.activeElement === back;
    back.hidden = past.length < 2;
    for (const [button, end] of [[previous, 0], [next, order.length - 1]]) {
      button.hidden = order.length < 2;
      button.setAttribute("aria-disabled", at === end);
    }
    const first = table.columns[0], where = order.length > 1 ? ` · ${(at + 1).toLocaleString("en")} of ${order.length.toLocaleString("en")}` : "";
    const partsOf = data.ranking ? [rankedItemParts, comparerParts] : [itemParts, annotatorParts];
    const parts = partsOf[table.name === "items" ? 0 : 1](table, row, votes, data, go);
    place.replaceChildren(
      make("p", { class: "over" }, first.title + where),
      make("h2", { id: "detail-title", tabindex: -1 }, shownOf(first, row)),
      ...parts,
    );
    dialog.scrollTop = 0;
    if (lost) place.querySelector("h2").focus();
  }

  // From one row to another; the way back stays.
  function go(table, row) {
    past.push({ table, row, order: [row] });
    return show();
  }

  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("audio, video")) return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  dialog.addEventListener("close", () => place.replaceChildren());
  return async (table, row, order = [row]) => {
    past = [{ table, row, order }];
    await show();
    dialog.showModal();
    place.querySelector("h2").focus();
  };
}

function factList(facts) {
  return make("dl", { class: "facts" }, ...facts.map(([title, tip, ...shown]) => make("div", {}, tipped(make("dt", {}, title), tip), make("dd", {}, ...shown))));
}

// What the columns say that are not shown elsewhere in the dialog.
function otherFacts(table, row, data, without) {
  return table.columns.slice(1)
    .filter((c) => !without.has(c.key) && !["matrix", "bars", "content"].includes(c.kind))
    .map((c) => [c.title, c.help, c.kind === "word" ? wordMark(c, row, data) : shownOf(c, row) || "no", ...intervalMark(table, c, row)]);
}

// The ends of an interval under the value.
function intervalMark(table, column, row) {
  if (!column.ends || column.values[row] === null) return [];
  const [low, high] = column.ends.map((key) => shownOf(table.byKey[key], row));
  return low === "–" ? [] : [make("small", {}, `${low} to ${high}`)];
}

function itemParts(items, row, votes, data, go) {
  const { byKey } = items, all = votes.ofItem(row), facts = [], parts = [];
  const shares = byKey.distribution ? entriesOf(byKey.distribution, row) : [];
  const runner = votes.runnerUp(row);
  if (byKey.label) {
    const p = byKey.confidence.values[row];
    facts.push(["Label", byKey.confidence.help, wordMark(byKey.label, row, data), make("small", {}, percent(p))]);
    if (runner) facts.push(["Runner-up", "the most likely other label among those that somebody gave", categoryMark(runner.category, data), make("small", {}, percent(runner.p))]);
    if (all) parts.push(make("p", { class: "why" }, whyThisLabel({ top: byKey.label.values[row], p, runner, shares, all, known: shownOf(byKey.status, row) === "known truth" }, votes, data).join(" ")));
  }
  if (byKey.expectation) {
    facts.push(["Score", byKey.expectation.help, shownOf(byKey.expectation, row), ...intervalMark(items, byKey.expectation, row)]);
  }
  facts.push(["Status", byKey.status.help, wordMark(byKey.status, row, data), make("small", {}, shownOf(byKey.why, row))]);
  parts.unshift(...contentParts(items, row, (data.files ??= readFiles())), factList(facts));
  parts.push(make("h3", {}, "Who said what"));
  parts.push(all ? voteTable(all, votes, byKey.label?.values[row], runner, data, go) : make("p", { class: "note" }, "The labels of this item were left out to keep the page small."));
  parts.push(sharesMark(byKey.distribution, byKey.given, row, data));
  const rest = otherFacts(items, row, data, new Set(["label", "confidence", "expectation", "score_low", "score_high", "status", "why"]));
  parts.push(make("details", {}, make("summary", {}, "More numbers"), factList(rest)));
  return parts;
}

// One row per label: those for the item's label first, then those for the runner-up.
function voteTable(all, votes, top, runner, data, go) {
  const rank = (v) => (v.category === top ? 0 : v.category === runner?.category ? 1 : 2);
  const rows = all.slice().sort((a, b) => rank(a) - rank(b) || a.category - b.category || (b.estimate ?? 0) - (a.estimate ?? 0));
  const number = (v) => (v === null ? "–" : v.toFixed(2)), { annotators } = data.tables, { byKey } = annotators;
  const columns = [["Annotator", byKey.annotator.help], ["Label", "the label this annotator gave"]];
  const estimate = byKey[votes.estimate];
  if (estimate) columns.push([estimate.title, estimate.help]);
  if (all[0].serious !== null) columns.push(["P serious", "probability that this label was serious"]);
  const weighted = all[0].weight !== null;
  if (weighted) columns.push(["Weight", votes.help]);
  const body = rows.map((v) => {
    const cells = [v.annotator === null ? v.name : opener(v.name, () => go(annotators, v.annotator)), categoryMark(v.category, data)];
    if (estimate) cells.push(number(v.estimate));
    if (all[0].serious !== null) cells.push(number(v.serious));
    if (weighted) cells.push(votes.kind === "odds" ? factorText(v.weight) : number(v.weight));
    return cells;
  });
  return smallTable("Who said what", columns, body);
}

function annotatorParts(annotators, row, votes, data, go) {
  const parts = [factList(otherFacts(annotators, row, data, new Set(["reason", "low", "high", "accuracy_low", "accuracy_high"])))], { byKey } = annotators;
  if (shownOf(byKey.reason, row)) parts.unshift(make("p", { class: "why" }, shownOf(byKey.reason, row)));
  parts.push(make("h3", {}, "Confusion matrix"), matrixMark(byKey.confusion, row, data, 36, true));
  const all = votes.ofAnnotator(row), { items } = data.tables, recovered = (v) => items.byKey.label?.values[v.item];
  if (!all.length) return parts;
  // Doubtful labels first; without p serious, those that differ from the recovered label.
  const doubt = (v) => v.serious ?? (recovered(v) === v.category ? 1 : 0);
  all.sort((a, b) => doubt(a) - doubt(b) || a.item - b.item);
  const columns = [["Item", items.byKey.item.help], ["Given", "the label this annotator gave"]];
  if (items.byKey.label) columns.push(["Recovered", "the item's recovered label"]);
  if (all[0].serious !== null) columns.push(["P serious", "probability that this label was serious"]);
  const body = all.slice(0, LISTED).map((v) => {
    const cells = [opener(shownOf(items.columns[0], v.item), () => go(items, v.item)), categoryMark(v.category, data)];
    if (items.byKey.label) cells.push(categoryMark(recovered(v), data));
    if (v.serious !== null) cells.push(v.serious.toFixed(2));
    return cells;
  });
  const total = byKey.n_labels.values[row], absent = total - all.length;
  const notes = [all.length > LISTED ? `and ${(all.length - LISTED).toLocaleString("en")} more` : "", absent ? `${labelsText(absent)} on items left out of this page` : ""].filter(Boolean);
  parts.push(make("h3", {}, "Labels, the most doubtful first"), smallTable("Labels", columns, body));
  if (notes.length) parts.push(make("p", { class: "quiet" }, `${notes.join("; ")}.`));
  return parts;
}

function opener(text, act) {
  const button = make("button", { type: "button", class: "open" }, text);
  button.addEventListener("click", act);
  return button;
}

function smallTable(name, columns, body) {
  const right = (at) => (at > 0 && !["Label", "Given", "Recovered", "Right", "Chosen"].includes(columns[at][0]) ? { class: "right" } : {});
  const heads = columns.map(([title, tip], at) => tipped(make("th", { scope: "col", ...right(at) }, title), tip));
  const rows = body.map((cells) => make("tr", {}, ...cells.map((cell, at) => make("td", right(at), cell))));
  return make("div", { class: "votes" }, make("table", { "aria-label": name }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
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
