// Shows an excerpt under each search result, from PAGE_TEXTS: the sections of every page, each as
// [anchor, text]. Pages opened as files cannot load each other, so Sphinx's own excerpts are off.
const BEFORE = 80;
const LENGTH = 240;

/** Returns a pattern that finds words with the stems of the query. */
function patternOf(query) {
  const stemmer = new Stemmer();
  const stems = splitQuery(query.toLowerCase().trim())
    .filter((word) => !stopwords.has(word))
    .flatMap((word) => [word, stemmer.stemWord(word)])
    .map((stem) => stem.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return stems.length ? new RegExp(`(?<![\\p{L}\\p{N}_])(?:${stems.join("|")})[\\p{L}\\p{N}]*`, "giu") : null;
}

/** Returns the part of the text around the first match. */
function excerptOf(text, pattern) {
  const match = text.search(pattern);
  let start = Math.max(0, match - BEFORE);
  if (start > 0) start = text.indexOf(" ", start) + 1;
  let end = Math.min(text.length, start + LENGTH);
  if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), match + 1);
  return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
}

/** Appends the text with its matches marked; the text is never taken as HTML. */
function appendMarked(element, text, pattern) {
  let done = 0;
  for (const match of text.matchAll(pattern)) {
    element.append(text.slice(done, match.index));
    element.appendChild(document.createElement("mark")).textContent = match[0];
    done = match.index + match[0].length;
  }
  element.append(text.slice(done));
}

/** Adds an excerpt of the linked section, or of the first section of the page with a match. */
function addExcerpt(result, pattern) {
  const link = result.querySelector("a");
  if (!link || result.querySelector(".excerpt")) return;
  const [page, anchor] = link.getAttribute("href").split("#");
  const sections = PAGE_TEXTS[page] ?? [];
  const ordered = [...sections.filter((s) => s[0] === anchor), ...sections];
  const found = ordered.find((section) => section[1].search(pattern) >= 0);
  if (!found) return;
  const excerpt = result.appendChild(document.createElement("p"));
  excerpt.className = "excerpt";
  appendMarked(excerpt, excerptOf(found[1], pattern), pattern);
}

document.addEventListener("DOMContentLoaded", () => {
  const pattern = patternOf(new URLSearchParams(location.search).get("q") ?? "");
  const output = document.getElementById("search-results");
  if (!pattern || !output) return;
  const update = () => output.querySelectorAll("ul.search li").forEach((each) => addExcerpt(each, pattern));
  new MutationObserver(update).observe(output, { childList: true, subtree: true });
  update();
});
