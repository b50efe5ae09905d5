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

function contentParts(items, row, files) {
  return items.columns.filter((c) => c.kind === "content" && c.values[row] !== null).map((column) => {
    const value = column.values[row], type = CONTENT_TYPES[column.types[row]], src = files[value] ?? value;
    const link = () => make("a", { href: value, target: "_blank", rel: "noopener noreferrer", referrerpolicy: "no-referrer" }, value.slice(0, 300));
    if (type === "text") return make("p", { class: "content" }, value);
    if (type === "link") return make("p", { class: "content" }, link());
    const media = type === "image" ? make("img", { alt: value.startsWith("data:") ? column.title : value.slice(0, 300), referrerpolicy: "no-referrer" }) : make(type, { controls: "", preload: "metadata" });
    media.addEventListener("error", () => media.replaceWith(make("p", { class: "note" }, `This ${type} cannot be loaded: `, value.startsWith("data:") ? column.title : link())));
    media.src = src;
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
  return log10 < 0 && shown !== "1" ? `÷ ${shown}` : `× ${shown}`;
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
    texts.push(`The other ${labelsText(rest.length)} (${others}) ${total(rest, "weight") > 0 ? `speak for ${a}` : `speak for ${b}`} (${factorText(total(rest, "weight"))}).`);
  }
  const most = one.shares.filter(([k]) => !all.some((v) => v.category === k)).sort((x, y) => y[1] - x[1])[0];
  if (most && most[0] !== top && most[1] >= 100 * runner.p && most[1] > 0) {
    texts.push(`${name(most[0])} has ${most[1]}%, but nobody gave it.`);
  }
  return texts;
}
