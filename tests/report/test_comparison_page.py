"""The page of a comparison in a browser: all models readable, links, no requests."""

from itertools import combinations
from types import SimpleNamespace

import pyarrow as pa
import pytest

from annotruth.models.registry import MODELS
from annotruth.report.comparison import write_comparison

NUMBERS = ("held_out", "held_out_error", "behind", "behind_error", "accuracy", "accuracy_low")
NUMBERS += ("accuracy_high", "f1_macro", "plcc", "srocc", "rmse", "seconds")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of all models, with made-up numbers."""
    models = [
        {"model": name, "spammers": 3, "iterations": 1000, "converged": False, "refused": None}
        | dict.fromkeys(NUMBERS, 0.0123 * (k + 1))
        for k, name in enumerate(MODELS)
    ]
    models[0] |= {"behind": 0.0, "behind_error": 0.0}
    pairs = [
        {"model": one, "other": other, "same_label": 0.987, "score_correlation": 1.0}
        for one, other in combinations(MODELS, 2)
    ]
    folder = tmp_path_factory.mktemp("comparison")
    compared = SimpleNamespace(
        model_table=lambda: pa.Table.from_pylist(models),
        agreement_table=lambda: pa.Table.from_pylist(pairs),
        finding="majority predicts held-out labels best",
        recommended="majority",
        choice=SimpleNamespace(model="robust-gpm"),
        why="robust-gpm is the default",
        data=SimpleNamespace(describe=lambda: "100 labels"),
    )
    write_comparison(compared, folder / "page.html")
    return folder / "page.html"


@pytest.mark.parametrize("width", [1440, 390])
def test_all_models_are_readable(read, page, width):
    opened = read(page, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    table = opened.page.locator(".models")
    assert table.locator("tbody th").all_inner_texts() == list(MODELS)
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    size = "narrow" if width == 390 else "wide"
    texts = opened.page.locator(f"figure[data-name=same-label] .{size} text").all_text_contents()
    assert set(MODELS) <= set(texts)
    cells = opened.page.locator(f"figure[data-name=same-label] .{size} text", has_text="98")
    assert cells.count() == len(MODELS) * (len(MODELS) - 1) // 2
    assert opened.messages == []
    assert len(opened.requests) == 1


def test_the_finding_is_on_the_first_screen(read, page):
    opened = read(page, width=390)
    lead = opened.page.locator("#finding .lead")
    assert lead.inner_text() == "majority predicts held-out labels best."
    assert lead.bounding_box()["y"] < 500
