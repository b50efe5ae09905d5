// Follows the project: when something changed, the page is fetched again and its content replaced.
const LEAST_WAIT = 2000; // milliseconds between two refreshes

function follow(main) {
  const status = document.getElementById("connection");
  let waiting = false, busy = false, last = 0, seen = null;
  const say = (text) => { status.textContent = text; status.hidden = !text; };
  const typing = () => main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  const selecting = () => !getSelection().isCollapsed && main.contains(getSelection().anchorNode);

  async function refresh() {
    waiting = false;
    if (document.hidden || typing() || selecting()) return later(); // nothing moves under the visitor's hands
    busy = true;
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (new URL(response.url).pathname === "/login") { say("The login has ended: load this page again."); source.close(); return; }
      if (response.ok) show(new DOMParser().parseFromString(await response.text(), "text/html"));
    } catch { /* the stream says when the server is back */ }
    busy = false;
    last = Date.now();
    if (waiting) later();
  }

  function later() {
    if (waiting && !busy) return;
    waiting = true;
    if (!busy) setTimeout(refresh, Math.max(LEAST_WAIT - (Date.now() - last), 0) || LEAST_WAIT / 4);
  }

  function show(page) {
    const before = new Map([...main.querySelectorAll(".facts div")].map((each) => [each.querySelector("dt").textContent, each.querySelector("dd").firstChild?.textContent]));
    const focused = document.activeElement?.id, open = [...main.querySelectorAll("details")].map((each) => each.open);
    main.replaceChildren(...page.getElementById("content").childNodes);
    document.querySelector(".top nav").replaceChildren(...page.querySelector(".top nav").childNodes);
    prepare();
    main.querySelectorAll("details").forEach((each, at) => { each.open = open[at] ?? false; });
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    for (const each of main.querySelectorAll(".facts div")) {
      const name = each.querySelector("dt").textContent, value = each.querySelector("dd");
      if (before.has(name) && before.get(name) !== value.firstChild?.textContent) value.classList.add("changed");
    }
    ROOT.dataset.refreshed = String(Number(ROOT.dataset.refreshed ?? 0) + 1);
  }

  const source = new EventSource(main.dataset.events);
  source.addEventListener("open", () => say(""));
  source.addEventListener("change", (event) => {
    say("");
    const changes = JSON.parse(event.data);
    // The first event is the state; what the page was made of is the same or older.
    const first = seen === null;
    seen = { ...seen, ...changes };
    ROOT.dataset.live = "yes";
    if (!first && ("version" in changes || "alert" in changes || main.dataset.labels !== undefined)) later();
  });
  source.addEventListener("error", () => {
    say(`Connection lost; the numbers are those of ${new Date().toLocaleTimeString()}. Trying again …`);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
  });
  addEventListener("pagehide", () => source.close());
}

