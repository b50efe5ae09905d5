"""Platforms and tools that write JSON: Prodigy, doccano, Argilla, peerannot, sureal, records."""

import json
import zipfile

import pytest

import annotruth as at


def prodigy(item, person, **more):
    return {
        "text": f"text {item}",
        "_input_hash": -item,
        "_task_hash": item * 10,
        "_annotator_id": f"set-{person}",
        "_session_id": f"set-{person}",
        "answer": "accept",
        **more,
    }


OPTIONS = [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}]


def test_choices_in_prodigy(same, lines, votes):
    records = [prodigy(e, p, options=OPTIONS, accept=[label]) for e, p, label in votes]
    records.append(prodigy(3, "cy", options=OPTIONS, accept=[], answer="ignore"))
    records.append(prodigy(3, "dan", options=OPTIONS, accept=["cat"], answer="reject"))
    fit = same(lines(records), "set.jsonl", [(-e, f"set-{p}", label) for e, p, label in votes])
    assert fit.data.read_as == (
        "Prodigy annotations (19 decisions, by choice, 1 ignored left out, 1 rejected left out)"
    )


def test_accepting_in_prodigy(same, lines, votes):
    decisions = {"cat": "accept", "dog": "reject"}
    records = [prodigy(e, p, label="SPAM", answer=decisions[x]) for e, p, x in votes]
    for record in records:
        del record["_annotator_id"]  # older versions have the session alone
    same(lines(records), "set.jsonl", [(10 * e, f"set-{p}", decisions[x]) for e, p, x in votes])


def test_users_in_one_file_of_doccano(same, write, lines, by_item, votes):
    ids = {"ann": 1, "bob": 2, "cy": 3}
    kinds = {"cat": 7, "dog": 8}
    records = [
        {
            "id": item,
            "text": "..",
            "annotations": [{"label": kinds[x], "user": ids[p], "id": 9} for p, x in given],
            "meta": {},
        }
        for item, given in by_item.items()
    ]
    long = [(item, ids[person], kinds[label]) for item, person, label in votes]
    classes = {"scale": "nominal"}  # the numbers are ids of labels
    fit = same(lines(records), "all.jsonl", long, long_options=classes)
    assert "doccano export (6 examples)" in fit.summary()
    assert at.read_labels(write(lines(records), "all.jsonl"), scale="ordinal").scale.is_ordinal


def of_user(votes, user):
    return [{"id": e, "text": "..", "label": [x]} for e, person, x in votes if person == user]


@pytest.mark.parametrize("packed", [True, False])
def test_one_file_per_user_of_doccano(tmp_path, lines, votes, packed):
    by_person = sorted(votes, key=lambda vote: vote[1])
    path = tmp_path / ("export.zip" if packed else "export")
    files = {f"{user}.jsonl": lines(of_user(votes, user)) for user in ("ann", "bob", "cy")}
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    else:
        path.mkdir()
        for name, text in files.items():
            (path / name).write_text(text)
    fit = at.fit(path)
    assert fit.labels().equals(at.fit(by_person).labels())
    assert fit.data.read_as == "doccano export (3 users, one file each)"


def test_the_file_of_one_user_of_doccano(same, lines, votes):
    wanted = [vote for vote in votes if vote[1] == "bob"]
    fit = same(lines(of_user(votes, "bob")), "bob.jsonl", wanted)
    assert "one user; give the folder of all users" in fit.data.read_as


@pytest.mark.parametrize("name", ["user", "username"])
def test_lists_of_labels_with_their_user(same, lines, votes, name):
    records = [{"id": e, "text": "..", "label": [x], name: person} for e, person, x in votes]
    same(lines(records), "l.jsonl", votes)


def test_a_platform_comes_before_names_of_columns(write, lines):
    record = {"id": 1, "text": "x", "annotations": [{"user": 1, "label": 2}]}
    record |= {"user": "a", "score": 3}
    labels = at.read_labels(write(lines([record]), "l.jsonl"))
    assert labels.read_as.startswith("doccano export")
    assert labels.scale.names == ["2"]


def argilla_1(by_item):
    return [
        {
            "fields": {"text": ".."},
            "responses": [
                {"user_id": f"u-{p}", "status": "submitted", "values": {"animal": {"value": x}}}
                for p, x in given
            ],
            "id": f"r{item}",
        }
        for item, given in by_item.items()
    ]


def argilla_2(by_item):
    return [
        {
            "id": f"r{item}",
            "fields": {"text": ".."},
            "metadata": {},
            "suggestions": {"animal": {"value": "horse"}},
            "responses": {"animal": [{"value": x, "user_id": f"u-{p}"} for p, x in given]},
            "status": "completed",
        }
        for item, given in by_item.items()
    ]


def argilla_flat(by_item):
    return [
        {
            "id": f"r{item}",
            "text": "..",
            "animal.responses": [x for _, x in given],
            "animal.responses.users": [f"u-{p}" for p, _ in given],
            "animal.responses.status": ["submitted"] * len(given),
            "animal.suggestion": "horse",
        }
        for item, given in by_item.items()
    ]


@pytest.mark.parametrize("make", [argilla_1, argilla_2, argilla_flat])
@pytest.mark.parametrize("in_lines", [True, False])
def test_records_of_argilla(same, lines, votes, by_item, make, in_lines):
    records = make(by_item)
    name = "records.jsonl" if in_lines else "records.json"
    long = [(f"r{item}", f"u-{person}", label) for item, person, label in votes]
    fit = same(lines(records) if in_lines else records, name, long)
    assert fit.data.read_as == "Argilla records (6 records, question animal)"


def test_discarded_and_drafted_responses_are_left_out(same, votes, by_item):
    records = argilla_1(by_item)
    for user, status in (("u-cy", "discarded"), ("u-dan", "draft")):
        values = {"animal": {"value": "dog"}}
        records[2]["responses"].append({"user_id": user, "status": status, "values": values})
    records[3]["responses"].append({"user_id": "u-eve", "status": "discarded", "values": None})
    long = [(f"r{item}", f"u-{person}", label) for item, person, label in votes]
    fit = same(records, "records.json", long)
    assert "2 discarded or draft left out" in fit.data.read_as


def test_several_questions_of_argilla_need_the_option_question(same, refused, votes, by_item):
    records = argilla_2(by_item)
    for record in records:
        record["responses"]["mood"] = [{"value": "calm", "user_id": "u-ann"}]
    assert "several questions, animal (cat, cat, dog), mood (" in refused(records, "records.json")
    long = [(f"r{item}", f"u-{person}", label) for item, person, label in votes]
    same(records, "records.json", long, question="animal")


SPAN = {"start_offset": 0, "label": "PER"}
FLAT = {"id": 1, "x.responses": ["a", "b"], "x.responses.users": ["u"]}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (prodigy(1, "ann", spans=[{"start": 0, "end": 1, "label": "X"}]), "spans"),
        (prodigy(1, "a", answer="yes"), "an answer is 'yes'"),
        ({"id": 1, "text": "x", "annotations": [{**SPAN, "user": 1}]}, "spans"),
        ({"id": 1, "text": "x", "label": [[0, 1, "PER"]]}, "spans"),
        ({"id": 1, "text": "x", "entities": [SPAN]}, "spans"),
        (FLAT, "2 responses by 1 users"),
    ],
)
def test_what_is_no_label_of_an_item_is_refused(refused, lines, record, message):
    assert message in refused(lines([record]), "records.jsonl")


def test_labels_of_peerannot(same, tmp_path, scores):
    labels = {}
    for item, person, label in scores:
        labels.setdefault(str(item), {})[person] = label
    classes = {"scale": "nominal"}
    named = {"input_format": "peerannot"}  # which needs no metadata.json
    fit = same(labels, "answers.json", scores, long_options=classes, **named)
    assert fit.data.read_as == "peerannot answers (6 tasks)"
    same(json.dumps(labels, indent=1), "answers.json", scores, long_options=classes, **named)
    ordinal = {"scale": "ordinal"}
    same(labels, "answers.json", scores, **ordinal, **named, long_options=ordinal)
    (tmp_path / "metadata.json").write_text('{"name": "x", "n_classes": 9, "n_workers": 3}')
    fit = same(
        labels, "answers.json", scores, long_options={"categories": list(range(9)), **classes}
    )
    assert "9 classes by metadata.json" in fit.data.read_as
    same(labels, "answers.json", scores, bins=2, long_options={"bins": 2})


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_bad_metadata_is_refused(refused, tmp_path, content):
    (tmp_path / "metadata.json").write_bytes(content.encode("latin-1"))
    assert "metadata.json" in refused({"1": {"a": 1}}, "answers.json")


@pytest.mark.parametrize("count", [2, 10**30, "many", None, True])
def test_metadata_that_does_not_fit_is_ignored(write, tmp_path, count):
    (tmp_path / "metadata.json").write_text(json.dumps({"n_classes": count}))
    labels = at.read_labels(write({"1": {"a": 3, "b": 4}}, "answers.json"))
    assert labels.n_categories == 2


def dataset(votes_of_item):
    return {
        "dataset_name": "films",
        "ref_videos": [{"content_id": 0, "content_name": "park", "path": "park.yuv"}],
        "dis_videos": [
            {"content_id": 0, "asset_id": item, "os": os, "path": f"{item}.yuv"}
            for item, os in votes_of_item.items()
        ],
    }


def test_scores_of_sureal_by_observer(same, scores):
    by_item = {}
    for item, person, score in scores:
        by_item.setdefault(item, {})[person] = score
    fit = same(dataset(by_item), "films.json", scores)
    assert "sureal dataset (6 distorted videos)" in fit.summary()


def test_scores_of_sureal_in_lists(same):
    text = json.dumps(dataset({0: [5, 4, float("nan")], 1: [3, None, 2]}), indent=4)
    assert "NaN" in text
    long = [(0, 1, 5), (0, 2, 4), (1, 1, 3), (1, 3, 2)]
    assert same(text, "films.json", long).data.n_dropped == 2


def test_repeated_scores_of_sureal(same, refused):
    content = dataset({0: [[5, 4], 3], 1: {"1": 2, "2": 2}})
    assert "labelled twice: annotator '1' on item 0" in refused(content, "films.json")
    long = [(0, "1", 5), (0, "1", 4), (0, "2", 3), (1, "1", 2), (1, "2", 2)]
    same(content, "films.json", long, duplicates="keep", long_options={"duplicates": "keep"})


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_plain_records(same, votes, indent):
    records = [dict(zip(("task", "worker", "label"), vote, strict=True)) for vote in votes]
    same(json.dumps(records, indent=indent), "labels.json", votes)


def test_columns_of_plain_records(same, votes):
    records = [dict(zip(("film", "user", "stars"), vote, strict=True)) for vote in votes]
    named = {"item": "film", "annotator": "user", "label": "stars"}
    same(records, "labels.json", votes, columns=named)
