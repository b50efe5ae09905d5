"""sureal's datasets in Python, which are never executed."""

import pytest

import annotruth as at

SCORES = [(0, "Tom", 3), (0, "Pip", 4), (1, "Tom", 2), (1, "Pip", 1)]
DATASET = """\
# scores by observer
import os
'''A data set.'''
dataset_name = 'films'
width = 1920
ref_score = -5.0
root = '/films'
names = ('Tom', "Pip")
first = {'Tom': 3, 'Pip': 4}
ref_videos = [{'content_id': 0, 'content_name': 'park', 'path': root + '/park.yuv'}]
dis_videos = [
    {'asset_id': 0, 'content_id': 0, 'os': first, 'path': os.path.join(root, '0.yuv')},
    {'asset_id': 1, 'content_id': 0, 'os': {'Tom': 2, 'Pip': 1}, 'path': f'{root}/1.yuv'},
]
"""


def test_scores_by_observer(same):
    fit = same(DATASET, "films.py", SCORES)
    assert fit.data.read_as == "sureal dataset (2 distorted videos)"


def test_scores_in_lists(same):
    long = [(0, 1, 5), (0, 2, 4), (1, 1, 3)]
    content = "dis_videos = [{'asset_id': 0, 'os': [5, 4]}, {'asset_id': 1, 'os': (3, None)}]"
    same(content, "films.py", long)


def test_nothing_is_executed(refused, tmp_path):
    touch = f"open({str(tmp_path / 'ran')!r}, 'w')"
    for code in (
        f"dis_videos = {touch}",
        f"{touch}\ndis_videos = []",
        f"dis_videos = [{{'asset_id': {touch}, 'os': [1]}}]",
        f"dis_videos = [{{'asset_id': 1, 'os': [1, {touch}]}}]",
        f"x = {touch}\ndis_videos = [{{'asset_id': 1, 'os': x}}]",
        f"dis_videos = [{{'asset_id': 1, 'os': {{{touch}: 1}}}}]",
        f"class dis_videos:\n    x = {touch}",
        f"import os; dis_videos = [{touch} for _ in range(3)]",
    ):
        assert "Python files are not executed" in refused(code, "films.py"), code
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ndis_videos = []\nfor i in range(3):\n    pass", "line 3 is not an assignment"),
        ("dis_videos = []\ndis_videos += [1]", "line 2 is not an assignment"),
        ("dis_videos = []\ndis_videos[0] = 1", "line 2 is not an assignment"),
        ("a = dis_videos = []", "line 1 is not an assignment"),
        ("x = 1\ndis_videos = x + x", "dis_videos is computed on line 2 (x + x)"),
        (
            "dis_videos = [{'asset_id': 1, 'os': [1, float('nan')]}]",
            "a score of video 1 is computed",
        ),
        ("dis_videos = [{'asset_id': 1, **x}]", "video 1 is computed on line 1"),
        ("dis_videos = [{'path': a.b, 'os': [1]}]", "path of video 1 is computed on line 1 (a.b)"),
        (
            "dis_videos = [{'asset_id': 1, 'dmos': 3}]",
            "no scores of observers (os, found: asset_id",
        ),
        ("videos = [1]", "there is no list dis_videos"),
        ("dis_videos = [\n", "line 1 is not Python"),
        ("dis_videos = " + "-" * 10**5 + "1", "nested too deeply"),
        ("dis_videos = " + "[" * 10**4, "not Python"),
        ("dis_videos = [b'x']", "video 1 is computed"),
    ],
)
def test_anything_but_values_is_refused_by_line(refused, code, message):
    assert message in refused(code, "films.py")


def test_long_names_are_shortened(refused):
    code = f"dis_videos = [{{'asset_id': 1, 'os{'x' * 10**5}': 3}}]"
    assert len(refused(code, "films.py")) < 500


def test_large_programs_are_refused(refused):
    code = "dis_videos = []\n" + "# comment\n" * 10**4
    assert "max_size=" in refused(code, "films.py", max_size="1MB")


def test_a_later_assignment_counts(write):
    code = DATASET + "dis_videos = [{'asset_id': 7, 'os': [1, 2]}]\n"
    assert at.read_labels(write(code, "films.py")).items.to_pylist() == [7]
