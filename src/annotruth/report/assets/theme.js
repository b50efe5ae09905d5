// Tips of charts and of elements with data-tip, for pointers and for the keyboard.
function tipsOfCharts() {
  for (const title of document.querySelectorAll("figure svg title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
}

function showTips() {
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const show = (element, x, y) => {
    // An open dialog is above everything that is not in it.
    (element.closest("dialog") ?? document.body).append(tip);
    tip.textContent = element.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
  };
  const move = (event) => {
    const element = event.target.closest?.("[data-tip]");
    if (element && element.dataset.tip) show(element, event.clientX, event.clientY);
    else hide();
  };
  addEventListener("pointermove", move, { passive: true });
  addEventListener("pointerdown", move, { passive: true });
  addEventListener("focusin", (event) => {
    if (!event.target.dataset?.tip || !event.target.matches(":focus-visible")) return hide();
    const box = event.target.getBoundingClientRect();
    show(event.target, box.left, box.bottom - 12);
  });
  addEventListener("scroll", hide, { passive: true, capture: true });
}

// Light or dark: as the system says, or as the button was last set, which the browser keeps.
const ROOT = document.documentElement;

function applyKeptTheme() {
  try { const kept = localStorage.getItem("annotruth-theme"); if (kept) ROOT.dataset.theme = kept; } catch { /* private windows forbid it */ }
}

function themeButton() {
  const dark = () => (ROOT.dataset.theme ? ROOT.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const keep = (theme) => { try { localStorage.setItem("annotruth-theme", theme); } catch { /* as above */ } };
  document.getElementById("theme").addEventListener("click", () => { ROOT.dataset.theme = dark() ? "light" : "dark"; keep(ROOT.dataset.theme); });
}

// What has the focus comes into view whole, in what scrolls sideways on a small screen.
function bring(element, view) {
  const inner = element.getBoundingClientRect(), outer = view.getBoundingClientRect();
  view.scrollLeft += Math.min(inner.left - outer.left, 0) + Math.max(inner.right - outer.right, 0);
}

function bringFocused() {
  addEventListener("focusin", ({ target }) => {
    const view = target.closest(".top nav, .paged");
    if (view) bring(target, view);
  });
}

// The bar at the top: the title when the heading is out of view, and where in the page one is.
function followSections() {
  const links = [...document.querySelectorAll(".top nav a")], sections = links.map((link) => document.querySelector(link.hash));
  let current;
  const mark = () => {
    const at = sections.findLastIndex((section) => section.getBoundingClientRect().top < innerHeight / 3), link = links[Math.max(at, 0)];
    ROOT.toggleAttribute("data-scrolled", document.querySelector(".heading").getBoundingClientRect().bottom < 48);
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    bring((current = link), link.parentNode);
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}
