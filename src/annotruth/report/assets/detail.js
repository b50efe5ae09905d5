// Who said what about an item, and why its label is this one and not the runner-up.
const COUNTED = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

// The labels of every item row: those of a row follow each other in the order of its "given" bars.
function makeVotes(votes, items, annotators) {
  const given = items.byKey.given, starts = new Uint32Array(votes.rows.length + 1), place = new Map();
  votes.rows.forEach((row, at) => {
    place.set(row, at);
    starts[at + 1] = starts[at] + entriesOf(given, row).reduce((sum, [, n]) => sum + n, 0);
  });
  const estimate = annotators.byKey.accuracy ?? annotators.byKey.reliability;
  const vote = (row, at, category) => {
    const annotator = votes.annotator[at];
    const known = annotator < annotators.rows;
    return {
      item: row, annotator: known ? annotator : null, category,
      name: known ? shownOf(annotators.columns[0], annotator) : votes.others[annotator - annotators.rows],
      estimate: known && estimate ? estimate.values[annotator] : null,
      serious: votes.p_serious ? votes.p_serious[at] / 100 : null,
      weight: votes.weight ? votes.weight[at] / 100 : null,
    };
  };
  const ofItem = (row) => {
    const at = place.get(row);
    if (at === undefined) return null;
    let next = starts[at];
    return entriesOf(given, row).flatMap(([category, n]) => Array.from({ length: n }, () => vote(row, next++, category)));
  };
  let byAnnotator;
  const ofAnnotator = (annotator) => {
    byAnnotator ??= groupedByAnnotator();
    return byAnnotator.get(annotator) ?? [];
  };
  function groupedByAnnotator() {
    const rows = new Map();
    votes.rows.forEach((row, at) => {
      for (let i = starts[at]; i < starts[at + 1]; i++) {
        const of = rows.get(votes.annotator[i]);
        if (of) of.push(row); else rows.set(votes.annotator[i], [row]);
      }
    });
    return rows;
  }
  const runnerUp = (row) => {
    const at = place.get(row);
    return at === undefined || votes.runner_up[at] < 0 ? null : { category: votes.runner_up[at], p: votes.p_runner_up[at] / 1000 };
  };
  return {
    kind: votes.kind, help: votes.help, estimate: estimate?.key, ofItem, runnerUp,
    ofAnnotator: (annotator) => [...new Set(ofAnnotator(annotator))].flatMap((row) => ofItem(row).filter((one) => one.annotator === annotator)),
  };
}

// What the item is. The types are those of report/content.py, which lets only safe addresses through.
const CONTENT_TYPES = ["text", "link", "image", "audio", "video"];

function contentParts(items, row) {
  return items.columns.filter((c) => c.kind === "content" && c.values[row] !== null).map((column) => {
    const value = column.values[row], type = CONTENT_TYPES[column.types[row]];
    const link = () => make("a", { href: value, target: "_blank", rel: "noopener noreferrer", referrerpolicy: "no-referrer" }, value.slice(0, 300));
    if (type === "text") return make("p", { class: "content" }, value);
    if (type === "link") return make("p", { class: "content" }, link());
    const media = type === "image" ? make("img", { alt: value.startsWith("data:") ? column.title : value.slice(0, 300), referrerpolicy: "no-referrer" }) : make(type, { controls: "", preload: "metadata" });
    media.addEventListener("error", () => media.replaceWith(make("p", { class: "note" }, `This ${type} cannot be loaded: `, value.startsWith("data:") ? column.title : link())));
    media.src = value;
    return make("div", { class: "content" }, media);
  });
}

// Texts such as "0.91, 0.84 and 0.35"; of many, the range.
function listed(values) {
  const texts = values.map((v) => v.toFixed(2));
  if (texts.length > 4) return `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

const labelsText = (n) => (n === 1 ? "1 label" : `${n.toLocaleString("en")} labels`);
const percent = (p) => (p > 0 && p < 0.005 ? "under 1%" : `${Math.round(100 * p)}%`);

function factorText(log10) {
  const factor = 10 ** Math.abs(log10), shown = factor >= 1000 ? "over 1,000" : COUNTED.format(factor);
  return shown === "1" ? "no difference" : `${shown} times ${log10 < 0 ? "less" : "more"} likely`;
}

function oddsText(p, other) {
  const odds = p / other;
  if (odds < 1.05) return "even odds";
  return `odds ${odds > 1000 ? "over 1,000" : COUNTED.format(odds)} to 1 for`;
}

// One or two sentences: how many labels each of the two has, from whom, and what they add up to.
function whyThisLabel(one, votes, data) {
  const { top, p, runner, known, all } = one, name = (k) => data.categories[k];
  if (known) return [`Its truth was given: ${name(top)}.`];
  const mine = all.filter((v) => v.category === top);
  if (!runner || mine.length === all.length) {
    const every = all.length === 1 ? `Its only label is ${name(top)}.` : `All ${labelsText(all.length)} are ${name(top)}.`;
    return [mine.length ? every : `Nobody gave ${name(top)}.`];
  }
  const theirs = all.filter((v) => v.category === runner.category), rest = all.filter((v) => v.category !== top && v.category !== runner.category);
  const [a, b] = [name(top), name(runner.category)], texts = [];
  const each = mine.length === theirs.length;
  if (!mine.length) texts.push(`Nobody gave ${a}; ${b} has ${labelsText(theirs.length)}.`);
  else if (each) texts.push(`${a} and ${b} each have ${labelsText(mine.length)}.`);
  else texts.push(`${a} has ${labelsText(mine.length)}, ${b} has ${theirs.length.toLocaleString("en")}.`);

  const odds = oddsText(p, runner.p), outcome = odds === "even odds" ? `${odds} between them` : `${odds} ${a}`;
  const total = (some, key) => some.reduce((sum, v) => sum + v[key], 0);
  const estimated = all.every((v) => v.estimate !== null) && mine.length;
  if (votes.kind === "serious" || votes.kind === "weight") {
    const key = votes.kind === "serious" ? "serious" : "weight", what = key === "serious" ? "p serious" : "annotators' weights";
    texts.push(`Labels count by ${what}: those for ${a} add up to ${total(mine, key).toFixed(1)}, those for ${b} to ${total(theirs, key).toFixed(1)}.`);
    if (total(mine, key) < total(theirs, key)) texts.push(`But the distribution is fitted to all labels as one shape, in which labels on both sides of ${a} count for it: ${percent(p)} against ${percent(runner.p)}.`);
  } else if (votes.kind === "vote") {
    texts.push(each ? "Every label counts as one vote, so this is a tie." : "Every label counts as one vote.");
  } else if (estimated) {
    texts.push(`Those for ${a} come from annotators with ${votes.estimate} ${listed(mine.map((v) => v.estimate))}, those for ${b} from ${listed(theirs.map((v) => v.estimate))}: ${outcome}.`);
  } else texts.push(`Together that makes ${outcome}.`);
  // A third category with as many labels as this one.
  const third = [...new Set(rest.map((v) => v.category))].map((k) => rest.filter((v) => v.category === k)).sort((x, y) => y.length - x.length)[0];
  if (third?.length >= mine.length && ["odds", "none"].includes(votes.kind)) {
    const k = third[0].category, from = estimated ? `, from annotators with ${votes.estimate} ${listed(third.map((v) => v.estimate))},` : "";
    texts.push(`${name(k)} has ${labelsText(third.length)}${from} and ${one.shares.find(([c]) => c === k)?.[1] ?? 0}%.`);
  }
  if (votes.kind === "odds" && rest.length && Math.abs(total(rest, "weight")) > 0.1) {
    const others = [...new Set(rest.map((v) => name(v.category)))].slice(0, 3).join(", ");
    texts.push(`The other ${labelsText(rest.length)} (${others}) ${total(rest, "weight") > 0 ? `speak for ${a}` : `speak for ${b}`} (${factorText(Math.abs(total(rest, "weight")))}).`);
  }
  const most = one.shares.filter(([k]) => !all.some((v) => v.category === k)).sort((x, y) => y[1] - x[1])[0];
  if (most && most[0] !== top && most[1] >= 100 * runner.p && most[1] > 0) {
    texts.push(`${name(most[0])} has ${most[1]}%, but nobody gave it.`);
  }
  return texts;
}

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
    .filter((c) => !without.has(c.key) && !["matrix", "bars", "content", "decision"].includes(c.kind))
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
  parts.unshift(...contentParts(items, row), factList(facts));
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
  if (weighted) columns.push([votes.kind === "odds" ? "Effect" : "Weight", votes.help]);
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
  if (byKey.decision) parts.push(make("p", {}, make("label", {}, "Decision ", byKey.decision.control(row))));
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
  const button = tipped(make("button", { type: "button", class: "open" }, ...bothEnds(text)), text.length > 24 ? text : "");
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
    svg.append(shape("text", { class: "at-text", x: left - 10, y: y + 18, "text-anchor": "end" }, shortened(name, 17)));
    if (distribution) svg.append(shape("rect", { class: `at-k${data.colors[k]}`, x: left, y: y + 2, height: 13, width: ((recovered.get(k) || 0) / 100) * room }));
    svg.append(shape("rect", { class: "at-given", x: left, y: y + 17, height: 8, width: (share / 100) * room }));
    const count = `${given.get(k) || 0} of ${all} labels`;
    svg.append(shape("text", { class: "at-tick", x: width, y: y + 18, "text-anchor": "end" }, distribution ? `${recovered.get(k) || 0}% · ${count}` : count));
  });
  return svg;
}

// The dialogs of a page of comparisons: an item with its opponents, an annotator with their votes.
const SIDES = ["left", "right", "tie"];

function makeComparisons(read) {
  const group = (...keys) => {
    const rows = new Map();
    for (const key of keys) read[key].forEach((row, at) => { if (!rows.has(row)) rows.set(row, []); rows.get(row).push(at); });
    return rows;
  };
  let items, annotators;
  return {
    ...read,
    ofItem: (row) => (items ??= group("left", "right")).get(row) ?? [],
    ofAnnotator: (row) => (annotators ??= group("annotator")).get(row) ?? [],
  };
}

function votesLeftOut() {
  return make("p", { class: "note" }, "The comparisons were left out to keep the page small.");
}

function rankedItemParts(items, row, votes, data, go) {
  const parts = [factList(otherFacts(items, row, data, new Set(["low", "high", "rank_low", "rank_high"])))];
  const all = votes.ofItem(row), opponents = new Map();
  if (!all.length) return [...parts, votesLeftOut()];
  for (const at of all) {
    const isLeft = votes.left[at] === row, other = isLeft ? votes.right[at] : votes.left[at], outcome = SIDES[votes.outcome[at]];
    if (other < 0) continue;
    const counts = opponents.get(other) ?? { won: 0, lost: 0, tied: 0 };
    if (outcome === "tie") counts.tied += 1;
    else if ((outcome === "left") === isLeft) counts.won += 1;
    else counts.lost += 1;
    opponents.set(other, counts);
  }
  const rank = items.byKey.rank.values;
  const rows = [...opponents].sort(([a], [b]) => rank[a] - rank[b] || a - b);
  const columns = [["Compared with", "the other item"], ["Rank", "its rank"], ["Share won", "share of the votes for this item, ties half"], ["Won", "how often this item was preferred"], ["Lost", "how often the other was"], ["Tied", "how often neither was"]];
  const body = rows.slice(0, 60).map(([other, n]) => [opener(shownOf(items.columns[0], other), () => go(items, other)), String(rank[other]), percent((n.won + n.tied / 2) / (n.won + n.lost + n.tied)), String(n.won), String(n.lost), String(n.tied)]);
  parts.push(make("h3", {}, "Against whom, best first"), smallTable("Opponents", columns, body));
  if (rows.length > body.length) parts.push(make("p", { class: "quiet" }, `and ${(rows.length - body.length).toLocaleString("en")} more.`));
  return parts;
}

function comparerParts(annotators, row, votes, data, go) {
  const { byKey } = annotators, { items } = data.tables;
  const parts = [factList(otherFacts(annotators, row, data, new Set(["reason", "low", "high", "accuracy_low", "accuracy_high", "side_bias_low", "side_bias_high", "evidence"])))];
  for (const key of ["evidence", "reason"]) if (byKey[key] && shownOf(byKey[key], row)) parts.unshift(make("p", { class: "why" }, shownOf(byKey[key], row)));
  if (byKey.decision) parts.push(make("p", {}, make("label", {}, "Decision ", byKey.decision.control(row))));
  const all = votes.ofAnnotator(row);
  if (!all.length) return [...parts, votesLeftOut()];
  const counts = SIDES.map((_, side) => all.filter((at) => votes.outcome[at] === side).length);
  parts.push(make("p", { class: "quiet" }, `Chose ${SIDES.map((side, k) => `${side} ${counts[k].toLocaleString("en")}`).join(", ")} times.`));
  const serious = votes.p_serious, name = (item) => (item < 0 ? "(not on this page)" : opener(shownOf(items.columns[0], item), () => go(items, item)));
  const order = serious ? all.slice().sort((a, b) => serious[a] - serious[b] || a - b) : all;
  const columns = [["Left", "the item on the left"], ["Right", "the item on the right"], ["Chosen", "what they chose"]];
  if (serious) columns.push(["P serious", "probability that this comparison was serious"]);
  const body = order.slice(0, LISTED).map((at) => [name(votes.left[at]), name(votes.right[at]), SIDES[votes.outcome[at]], ...(serious ? [(serious[at] / 100).toFixed(2)] : [])]);
  parts.push(make("h3", {}, serious ? "Comparisons, the most doubtful first" : "Comparisons"), smallTable("Comparisons", columns, body));
  if (all.length > LISTED) parts.push(make("p", { class: "quiet" }, `and ${(all.length - LISTED).toLocaleString("en")} more.`));
  return parts;
}
