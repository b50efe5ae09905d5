"""A walk through a page with the Tab key alone.

Rows of the report's tables come and go as these are scrolled: they have no place in the page, but must
have a name and show the focus, too.
"""

from typing import NamedTuple

_FIND = """() => {
    const all = document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']");
    const found = [...all].filter(
        e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility() && !e.closest(".view tbody"));
    found.forEach((e, n) => e.dataset.walk = n);
    return found.map(e => e.outerHTML.slice(0, 120));
}"""
_FOCUSED = """async () => {
    await new Promise(requestAnimationFrame);  // a table that scrolls draws its rows with the next frame
    const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    const own = e.getAttribute("aria-labelledby");
    const texts = [e.getAttribute("aria-label"), own && document.getElementById(own)?.textContent,
        ...[...(e.labels ?? [])].map(l => l.textContent), e.textContent, e.title, e.alt];
    const fits = box.height < innerHeight && box.width <= innerWidth;
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return {
        place: e.dataset.walk === undefined ? null : Number(e.dataset.walk),
        is_page: e === document.body,
        name: texts.find(t => t?.trim())?.trim() ?? "",
        has_outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
        is_covered: fits && !(top && (e.contains(top) || top.contains(e))),
        html: e.outerHTML.slice(0, 120),
    };
}"""


class Walk(NamedTuple):
    """What can have the focus, and what had it, press after press."""

    expected: list[str]
    focused: list[dict]

    def problems(self) -> list[str]:
        """Return what somebody without a mouse stumbles over."""
        places = [each["place"] for each in self.focused if each["place"] is not None]
        missed = set(range(len(self.expected))) - set(places)
        found = [f"never has the focus: {self.expected[n]}" for n in sorted(missed)]
        found += [f"has no name: {each['html']}" for each in self.focused if not each["name"]]
        unseen = [each for each in self.focused if not each["has_outline"]]
        found += [f"has the focus without showing it: {each['html']}" for each in unseen]
        covered = [each for each in self.focused if each["is_covered"]]
        found += [f"is covered while it has the focus: {each['html']}" for each in covered]
        if places != sorted(places):
            found.append(f"the order of the page is not that of the Tab key: {places}")
        return found


def walk(page, n_rows: int = 0, *, key: str = "Tab") -> Walk:
    """Press Tab, or Shift+Tab, until the focus has come round to where it was first.

    ``n_rows`` is the number of rows of the page's tables in all.
    """
    expected = page.evaluate(_FIND)
    focused: list[dict] = []
    for _ in range(len(expected) + n_rows + 5):
        page.keyboard.press(key)
        now = page.evaluate(_FOCUSED)
        if focused and now["place"] is not None and now["place"] == focused[0]["place"]:
            break
        if not now["is_page"]:  # else the focus is on the browser itself
            focused.append(now)
    if key != "Tab":
        focused.reverse()
    numbered = [n for n, each in enumerate(focused) if each["place"] is not None]
    first = min(numbered, key=lambda n: focused[n]["place"])
    return Walk(expected, focused[first:] + focused[:first])
