"""Tables with cleanlab's names."""

import numpy as np
import pytest

import annotruth as at

ROWS = [
    *[(item, who, "ab"[item % 2]) for item in range(40) for who in ("ann", "bob")],
    *[(item, "eve", "a") for item in range(20)],
]


@pytest.mark.parametrize("model", ["robust-gpm", "dawid-skene", "majority"])
def test_label_quality(model):
    fit = at.fit(ROWS, model)
    table = fit.label_quality()
    assert list(table.columns) == [
        *("item", "consensus_label", "consensus_quality_score"),
        *("annotator_agreement", "num_annotations"),
    ]
    items = fit.items()
    assert table["consensus_label"].tolist() == items["label"].tolist()
    assert table["num_annotations"].tolist() == [3] * 20 + [2] * 20
    np.testing.assert_allclose(table["annotator_agreement"][:4], [1, 2 / 3, 1, 2 / 3])
    np.testing.assert_allclose(table["consensus_quality_score"], items["confidence"])


def test_annotator_stats():
    table = at.fit(ROWS).annotator_stats()
    assert list(table.columns) == [
        *("annotator", "annotator_quality", "num_examples_labeled"),
        *("agreement_with_consensus", "worst_class"),
    ]
    eve = table.iloc[0]
    assert eve["annotator"] == "eve"  # the lowest quality comes first
    assert eve["worst_class"] == "b"
    assert eve["agreement_with_consensus"] == 0.5
    assert eve["annotator_quality"] == pytest.approx(0.5, abs=0.05)
    assert table["num_examples_labeled"].tolist() == [20, 40, 40]


def test_scores_alone_have_no_label_quality():
    fit = at.fit([(item, who, item % 5) for item in range(9) for who in range(3)], "mean")
    with pytest.raises(at.AnnotruthError, match="estimates scores"):
        fit.label_quality()


def test_opinions_have_the_quality_of_the_leading_label():
    fit = at.fit(at.simulate.crowd(n_items=30, n_annotators=8, seed=0).labels, truth="opinions")
    right = fit.distributions("right")
    table = fit.label_quality()
    first = right[right["item"] == table["item"][0]].set_index("label")["p"]
    expected = first[table["consensus_label"][0]]
    assert table["consensus_quality_score"][0] == pytest.approx(expected)
