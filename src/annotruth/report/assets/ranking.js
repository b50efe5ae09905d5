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
  const columns = [["Compared with", "the other item"], ["Rank", "its rank"], ["Won", "how often this item was preferred"], ["Lost", "how often the other was"], ["Tied", "how often neither was"]];
  const body = rows.slice(0, 60).map(([other, n]) => [opener(shownOf(items.columns[0], other), () => go(items, other)), String(rank[other]), String(n.won), String(n.lost), String(n.tied)]);
  parts.push(make("h3", {}, "Against whom, best first"), smallTable("Opponents", columns, body));
  if (rows.length > body.length) parts.push(make("p", { class: "quiet" }, `and ${(rows.length - body.length).toLocaleString("en")} more.`));
  return parts;
}

function comparerParts(annotators, row, votes, data, go) {
  const { byKey } = annotators, { items } = data.tables;
  const parts = [factList(otherFacts(annotators, row, data, new Set(["reason", "low", "high", "side_bias_low", "side_bias_high", "evidence"])))];
  for (const key of ["evidence", "reason"]) if (byKey[key] && shownOf(byKey[key], row)) parts.unshift(make("p", { class: "why" }, shownOf(byKey[key], row)));
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
