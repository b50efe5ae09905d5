// Follows the project: when something changed, the page is fetched again and its content replaced.
const LEAST_WAIT = 2000; // milliseconds between two refreshes

function follow(main) {
  const status = document.getElementById("connection");
  let source, timer = 0, busy = false, again = false, last = 0, seen = null, lost = null;
  const say = (text) => { if (status.textContent !== text) status.textContent = text; status.hidden = !text; };
  const typing = () => main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  const selecting = () => !getSelection().isCollapsed && main.contains(getSelection().anchorNode);

  function later() {
    again = true;
    if (!busy && !timer) timer = setTimeout(refresh, Math.max(LEAST_WAIT - (Date.now() - last), LEAST_WAIT / 4));
  }

  async function refresh() {
    timer = 0;
    if (typing() || selecting()) return later(); // nothing moves under the visitor's hands
    busy = true;
    again = false;
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (response.status === 401) { say("The login has ended: load this page again."); source.close(); return; }
      if (response.ok) show(new DOMParser().parseFromString(await response.text(), "text/html"));
    } catch { /* the stream says when the server is back */ }
    busy = false;
    last = Date.now();
    if (again) later();
  }

  function show(page) {
    const before = new Map([...main.querySelectorAll(".facts div")].map((each) => [each.querySelector("dt").textContent, each.querySelector("dd").firstChild?.textContent]));
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const open = [...main.querySelectorAll("details")].map((each) => each.open);
    const scrolled = [...main.querySelectorAll(".paged")].map((each) => each.scrollLeft);
    main.replaceChildren(...page.getElementById("content").childNodes);
    document.querySelector(".top nav").replaceChildren(...page.querySelector(".top nav").childNodes);
    prepare();
    main.querySelectorAll("details").forEach((each, at) => { each.open = open[at] ?? false; });
    main.querySelectorAll(".paged").forEach((each, at) => { each.scrollLeft = scrolled[at] ?? 0; });
    if (focused) [...main.querySelectorAll(focused.tagName)].find((each) => isSame(each, focused))?.focus({ preventScroll: true });
    for (const each of main.querySelectorAll(".facts div")) {
      const name = each.querySelector("dt").textContent, value = each.querySelector("dd");
      if (before.has(name) && before.get(name) !== value.firstChild?.textContent) value.classList.add("changed");
    }
    ROOT.dataset.refreshed = String(Number(ROOT.dataset.refreshed ?? 0) + 1);
  }

  function isSame(one, other) {
    return ["id", "href", "aria-label"].every((name) => one.getAttribute(name) === other.getAttribute(name));
  }

  function connect() {
    source = new EventSource(main.dataset.events);
    source.addEventListener("open", () => { lost = null; say(""); });
    source.addEventListener("change", (event) => {
      // The first event is the state; what the page was made of is the same or older.
      const state = JSON.parse(event.data), before = seen ?? state;
      const changed = (name) => name in state && state[name] !== before[name];
      seen = { ...before, ...state };
      ROOT.dataset.live = "yes";
      if (changed("version") || changed("alert") || (main.dataset.labels !== undefined && changed("last_seq"))) later();
    });
    source.addEventListener("error", () => {
      lost ??= new Date();
      say(`Connection lost; the numbers are those of ${lost.toLocaleTimeString()}. Trying again …`);
      if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
    });
  }

  connect();
  // A browser has few connections to one server: tabs in the background must not use them up.
  document.addEventListener("visibilitychange", () => { source.close(); if (!document.hidden) connect(); });
  addEventListener("pagehide", () => source.close());
}

// What every page does: theme, tips, times in the visitor's zone, questions before forms are sent.
function prepare() {
  tipsOfCharts();
  for (const time of document.querySelectorAll("time[datetime]")) {
    time.dataset.tip = new Date(time.dateTime).toLocaleString();
  }
}

function askBeforeSending() {
  addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
}

// The link that the command prints has the token behind #, which is not sent to servers.
function logInByLink() {
  const login = document.getElementById("login"), token = location.hash.slice(1);
  if (!login || !token.startsWith("at_")) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  login.requestSubmit();
}

applyKeptTheme();
addEventListener("DOMContentLoaded", () => {
  themeButton();
  bringFocused();
  prepare();
  document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  showTips();
  askBeforeSending();
  logInByLink();
  addEventListener("hashchange", logInByLink); // the link was pasted into this page's address
  const main = document.querySelector("main[data-events]");
  if (main) follow(main);
  ROOT.dataset.ready = "yes";
});
