"""Estimators with scikit-learn's pipelines, cross-validation, searches and checks."""

import warnings

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS, find_class, get_model
from annotruth.selection.heldout import score_folds

pytest.importorskip("sklearn")
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

SHUFFLED = KFold(3, shuffle=True, random_state=0)

# The checks of scikit-learn fit arrays of numbers, one sample per row. Here an array is a matrix of items
# by annotators, and a sample is one label: a row of a table of item, annotator and label.
PREDICTS_PER_LABEL = "an array has several labels per row, and predictions are per label"
NO_ARRAY_OF_NUMBERS = "what arrays must be refused differs: NaN is no label, any value may be one"
OWN_COLUMNS = "columns are found by name, and their number says nothing"
NOT_APPLICABLE = {
    **dict.fromkeys(
        (
            *("check_fit_score_takes_y", "check_estimators_dtypes", "check_dtype_object"),
            *("check_pipeline_consistency", "check_estimators_pickle", "check_supervised_y_2d"),
            *("check_f_contiguous_array_estimator", "check_classifiers_one_label"),
            *(
                "check_classifiers_classes",
                "check_methods_sample_order_invariance",
                "check_regressors_int",
            ),
            *("check_methods_subset_invariance", "check_dict_unchanged", "check_fit_idempotent"),
        ),
        PREDICTS_PER_LABEL,
    ),
    **dict.fromkeys(
        (
            *(
                "check_complex_data",
                "check_estimators_empty_data_messages",
                "check_estimators_nan_inf",
            ),
            *(
                "check_estimator_sparse_array",
                "check_estimator_sparse_matrix",
                "check_fit2d_predict1d",
            ),
            *("check_classifier_data_not_an_array", "check_regressor_data_not_an_array"),
        ),
        NO_ARRAY_OF_NUMBERS,
    ),
    **dict.fromkeys(
        (
            *("check_classifiers_train", "check_regressors_train", "check_supervised_y_no_nan"),
            "check_classifiers_regression_target",
        ),
        "y is not used: models learn from labels, without a truth",
    ),
    **dict.fromkeys(
        (
            *("check_n_features_in_after_fitting", "check_n_features_in"),
            "check_estimators_partial_fit_n_features",
        ),
        OWN_COLUMNS,
    ),
    "check_estimators_unfitted": "raises annotruth's NotFittedError, which is an AttributeError, too",
    "check_non_transformer_estimators_n_iter": "the number of iterations is result_.n_iter",
    "check_regressors_no_decision_function": "models of scores have predict_proba, for labels by annotators",
}


class OfArrays:
    """Claims to take arrays, so that scikit-learn runs all of its checks."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class ClassesOfArrays(OfArrays, at.GPM):
    pass


class ScoresOfArrays(OfArrays, at.MeanScore):
    pass


@pytest.fixture(scope="module")
def frame():
    """Labels of 60 items by 12 people, three in four of which are right, in no order."""
    rng = np.random.default_rng(0)
    item, annotator = np.divmod(rng.permutation(60 * 12), 12)
    wrong = rng.integers(1, 5, item.size)
    label = np.where(rng.random(item.size) < 0.7, 1 + item % 4, wrong)
    return pd.DataFrame({"item": item, "annotator": annotator, "label": label})


@pytest.fixture(scope="module")
def truth(frame):
    """The truth of the item of each row."""
    return 1 + frame.item % 4


@pytest.mark.filterwarnings("ignore::annotruth.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_models_are_cross_validated_and_predict_per_row(name, frame, truth):
    model = get_model(name)()
    assert cross_val_score(model, frame, truth, cv=SHUFFLED).min() > 0.7
    held_out = cross_val_score(model, frame, cv=SHUFFLED)
    assert (held_out > np.log(1 / 4)).all(), held_out  # better than chance, without a truth
    items = cross_val_score(model, frame, truth, cv=GroupKFold(3), groups=frame.item)
    assert items.min() > 0.7  # of items that are not in the fit
    model.fit(frame, truth)
    check_is_fitted(model)
    predicted, of_items = model.predict(frame), model.result_.items().set_index("item")
    column = "label" if model.capabilities.gives_labels else "expectation"
    np.testing.assert_array_equal(predicted, of_items.loc[frame.item, column])
    if model.capabilities.gives_labels:
        expected = of_items.loc[frame.item, [f"p_{k}" for k in model.classes_]]
        np.testing.assert_array_equal(model.predict_proba(frame), expected)
        assert model.score(frame, truth) == (predicted == truth).mean()
        log_loss = cross_val_score(model, frame, truth, cv=SHUFFLED, scoring="neg_log_loss")
        assert np.isfinite(log_loss).all()


@pytest.mark.filterwarnings("ignore::annotruth.ConvergenceWarning")
def test_a_search_chooses_options_without_a_truth(frame):
    grid = {"behavior": ["uniform", "learned"]}
    search = GridSearchCV(at.GPM(), grid, cv=SHUFFLED).fit(frame)
    assert search.best_params_["behavior"] in grid["behavior"]
    assert isinstance(search.best_estimator_.result_, at.Fit)
    options = search.cv_results_["mean_test_score"]
    assert options[0] != options[1]


def test_held_out_labels_score_as_in_held_out(frame):
    data = at.Labels.of(frame)
    fold = np.arange(data.n_labels) % 3
    expected = score_folds(at.OneCoin(), data, fold).score
    row = np.argsort(data.row)  # folds are of labels in the order of the table of items
    found = [at.OneCoin().fit(frame[fold[row] != k]).score(frame[fold[row] == k]) for k in range(3)]
    assert np.mean(found) == pytest.approx(expected, abs=1e-9)


def test_a_pipeline_ends_with_a_model(frame, truth):
    renamed = frame.rename(columns={"label": "colour"})
    to_label = FunctionTransformer(lambda table: table.rename(columns={"colour": "label"}))
    pipeline = make_pipeline(to_label, at.OneCoin()).fit(renamed, truth)
    alone = at.OneCoin().fit(frame)
    np.testing.assert_array_equal(pipeline.predict(renamed), alone.predict(frame))
    assert pipeline.score(renamed, truth) == alone.score(frame, truth)
    check_is_fitted(pipeline)


def test_items_that_are_not_in_the_fit_are_fitted_with_its_labels(frame):
    seen = frame.item.isin(frame.item.unique()[:40])
    model = at.GPM().fit(frame[seen])
    both = at.GPM().fit(frame)
    # Items of the fit keep its labels; the estimator is as it was.
    rows = frame[~seen]
    np.testing.assert_array_equal(model.predict(rows), both.predict(rows))
    assert model.result_.data.n_items == 40
    np.testing.assert_allclose(model.predict_proba(rows), both.predict_proba(rows))


def test_classes_are_sorted_and_the_order_of_rows_does_not_matter():
    sizes = pd.Categorical(
        ["small", "large", "small", "mid"], ["small", "mid", "large"], ordered=True
    )
    frame = pd.DataFrame({"item": list("abab"), "annotator": list("xyyx"), "label": sizes})
    model = at.MajorityVote().fit(frame)
    assert model.classes_.tolist() == ["large", "mid", "small"]
    assert model.predict_proba(frame).tolist() == [[0, 0, 1], [0.5, 0.5, 0]] * 2
    assert model.predict(frame[::-1]).tolist() == model.predict(frame)[::-1].tolist()


@pytest.mark.parametrize("name", PAIR_MODELS)
def test_models_of_comparisons_are_cross_validated(name):
    made = at.simulate.comparers(n_items=8, n_annotators=10, comparisons_per_annotator=40, seed=1)
    votes = made.tables()["votes"].to_pandas()
    model = find_class(PAIR_MODELS, name)()
    held_out = cross_val_score(model, votes, cv=SHUFFLED)
    data = at.Comparisons.of(votes)
    fold = np.zeros(data.n_comparisons, int)
    for k, (_, rows) in enumerate(SHUFFLED.split(votes)):
        fold[np.isin(data.row, rows)] = k
    assert held_out.mean() == pytest.approx(score_folds(model, data, fold).score, abs=0.005)
    assert check_is_fitted(model.fit(votes, None)) is None
    with pytest.raises(at.InputError, match="no comparison is of two items that are in the fit"):
        model.score([("new", "other", "x", "left")])


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        (np.ones((4, 3)), None, "4 rows have 12 labels: predictions are per row"),
        ([("a", "x", 1), ("a", "y", None)], None, "2 rows have 1 labels"),
        ([("new", "x", 1)], None, "shuffle the folds, such as cv=KFold"),
        ([("a", "x", 1)], [1, 2], "y has 2 values for 1 rows"),
    ],
)
def test_tables_that_cannot_be_scored_are_refused(data, y, message):
    model = at.MajorityVote().fit([("a", "x", 1), ("a", "y", 2), ("b", "x", 2)])
    with pytest.raises(at.InputError, match=message):
        model.score(data, y)


def test_models_of_scores_predict_no_classes(frame):
    with pytest.raises(at.AnnotruthError, match="mean estimates scores"):
        at.MeanScore().fit(frame).predict_proba(frame)


def test_what_does_not_apply_of_scikit_learns_checks_is_listed():
    failed, passed = set(), set()
    for estimator in (ClassesOfArrays(), ScoresOfArrays()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for check in check_estimator(estimator, on_fail=None, on_skip=None):
                {"failed": failed, "passed": passed}.get(check["status"], set()).add(
                    check["check_name"]
                )
    assert failed == NOT_APPLICABLE.keys()
    assert len(passed - failed) >= 18
    with pytest.warns(match="Can't test estimator GPM which requires input"):
        check_estimator(at.GPM())  # which says itself that it takes no arrays of numbers
