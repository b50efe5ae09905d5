"""Label Studio's exports: tasks with annotations, and the short one."""

import copy
import csv
import io
import json

import pytest

import annotruth as at

IDS = {"ann": 11, "bob": 12, "cy": 13}


def result(label, question="animal", kind="choices"):
    value = {kind: [label] if kind == "choices" else label}
    return {"id": "r1", "type": kind, "from_name": question, "to_name": "photo", "value": value}


def annotation(person, label, **more):
    return {
        "id": 100,
        "completed_by": IDS[person],
        "result": [result(label)],
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": 3.5,
        **more,
    }


@pytest.fixture
def tasks(by_item):
    return [
        {
            "id": item,
            "data": {"image": f"/photos/{item}.jpg"},
            "annotations": [annotation(*vote) for vote in given],
            "predictions": [{"result": [result("horse")]}],
        }
        for item, given in by_item.items()
    ]


def all_annotations(tasks):
    return [one for task in tasks for one in task["annotations"]]


@pytest.fixture
def long(votes):
    return [(item, IDS[person], label) for item, person, label in votes]


@pytest.mark.parametrize("indent", [None, 2])
def test_choices_of_several_annotators(same, tasks, long, indent):
    fit = same(json.dumps(tasks, indent=indent), "export.json", long)
    assert fit.data.read_as == "Label Studio export (6 tasks, question animal)"


def test_cancelled_annotations_are_left_out_and_ground_truths_are_gold(same, tasks, long):
    tasks[0]["annotations"].append(annotation("cy", "dog", was_cancelled=True))
    tasks[1]["annotations"].append(annotation("ann", "dog", ground_truth=True))
    fit = same(tasks, "export.json", long, gold={2: "dog"})
    assert fit.summary().splitlines()[1] == (
        "read as: Label Studio export (6 tasks, question animal, 1 cancelled annotation left out, "
        "1 truth taken as gold)"
    )


def test_a_truth_of_an_item_without_labels_is_counted(same, tasks, long):
    tasks.append(
        {**tasks[0], "id": 99, "annotations": [annotation("ann", "cat", ground_truth=True)]}
    )
    fit = same(tasks, "export.json", long)
    assert "1 truth of an item without labels" in fit.data.read_as


def test_two_truths_that_differ_are_refused(refused, tasks):
    tasks[0]["annotations"] += [
        annotation("ann", label, ground_truth=True) for label in ("cat", "dog")
    ]
    assert "item 1 has two truths, 'cat' and 'dog'" in refused(tasks, "export.json")


def test_an_annotator_may_be_a_record(same, tasks, long):
    for one in all_annotations(tasks):
        one["completed_by"] = {"id": one["completed_by"], "email": "a@example.org"}
    same(tasks, "export.json", long)


def test_ratings(same, by_item, scores):
    given = {item: [vote[1:] for vote in scores if vote[0] == item] for item in by_item}
    tasks = [
        {
            "id": item,
            "data": {"video": "v.mp4"},
            "annotations": [
                {"completed_by": person, "result": [result(label, "stars", "rating")]}
                for person, label in ratings
            ],
        }
        for item, ratings in given.items()
    ]
    assert same(tasks, "export.json", scores).data.scale.is_ordinal


PLACES = {
    "rectanglelabels": {"x": 50.8, "y": 5.9, "width": 12.4, "height": 10.5},
    "polygonlabels": {"points": [[1, 2], [3, 4], [5, 6]], "closed": True},
    "brushlabels": {"format": "rle", "rle": [0, 1, 2]},
    "keypointlabels": {"x": 5.1, "y": 6.2, "width": 0.4},
    "ellipselabels": {"x": 5.1, "y": 6.2, "radiusX": 3, "radiusY": 2},
    "labels": {"start": 3, "end": 9, "text": "Lisbon"},
    "hypertextlabels": {"start": "/p[1]", "startOffset": 0, "end": "/p[1]", "endOffset": 3},
    "choices": {"start": 3, "end": 9, "text": "Lisbon"},  # asked about a region
}


def region(kind):
    value = {**PLACES[kind], kind: ["Place"]}
    return {"id": "r9", "type": kind, "from_name": "tag", "to_name": "x", "value": value}


@pytest.mark.parametrize("kind", PLACES)
def test_regions_are_refused_by_name(refused, tasks, kind):
    for one in all_annotations(tasks):
        one["result"] = [region(kind)]
    for options in ({}, {"question": "tag"}):
        text = refused(tasks, "export.json", **options)
        assert text.startswith(f"the regions of 'tag' ({kind}) are not classes: boxes, polygons")
        assert "columns item, annotator, label" in text


@pytest.mark.parametrize("kind", PLACES)
def test_regions_beside_choices_are_left_out_and_announced(same, refused, tasks, long, kind):
    tasks[0]["annotations"][0]["result"].append(region(kind))
    fit = same(tasks, "export.json", long)
    assert f"question animal, not read: tag ({kind})" in fit.data.read_as
    assert "regions of 'tag'" in refused(tasks, "export.json", question="tag")


def test_tasks_as_they_are_imported_are_numbered(same, tasks, long):
    for task in tasks:
        del task["id"]
    fit = same(tasks, "import.json", long)
    assert "6 tasks, numbered from 1" in fit.data.read_as


def test_tasks_that_do_not_say_who_made_them_are_refused(refused, tasks):
    for one in all_annotations(tasks):
        del one["completed_by"]
    assert "no annotation says who made it (completed_by)" in refused(tasks, "import.json")


def test_predictions_alone_are_nothing_to_fit(refused, tasks):
    for task in tasks:
        del task["annotations"]
    assert "there is no question with a label" in refused(tasks, "export.json")


def test_choices_of_a_taxonomy_are_paths(write, tasks):
    for one in all_annotations(tasks):
        one["result"] = [result([["Animal", "Cat"]], "kind", "taxonomy")]
    assert at.read_labels(write(tasks, "export.json")).scale.names == ["Animal / Cat"]


def test_several_questions_need_the_option_question(same, refused, tasks, long):
    for one in all_annotations(tasks):
        one["result"].append(result("sharp", "quality"))
    assert refused(tasks, "export.json") == (
        "there are several questions, animal (cat, cat, dog), quality (sharp, sharp, sharp): choose "
        "one with question='animal' or question='quality'; fit takes all of them with "
        "question='all'; see annotruth.open_labels"
    )
    same(tasks, "export.json", long, question="animal")
    text = refused(tasks, "export.json", question="size")
    assert "no question 'size' (found: animal, quality)" in text


def test_several_choices_are_a_set(write, tasks):
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["dog", "cat"]
    tasks[1]["annotations"][0]["result"][0]["value"]["choices"] = ["cat", "dog"]
    labels = at.read_labels(write(tasks, "export.json"))
    assert labels.scale.names == ['["cat", "dog"]', '["cat"]', '["dog"]']
    assert "2 answers of several labels" in labels.read_as


def test_texts_and_relations_are_ignored(same, tasks, long):
    for task in tasks:
        task["annotations"][0]["result"] += [
            {"type": "relation", "from_id": "a", "to_id": "b"},
            result(["hm"], "note", "textarea"),
        ]
    same(tasks, "export.json", long)


def test_repeated_annotations_follow_the_option_duplicates(same, refused, tasks, long):
    tasks[0]["annotations"].append(copy.deepcopy(tasks[0]["annotations"][0]))
    same(tasks, "export.json", long)
    tasks[0]["annotations"][-1] = annotation("ann", "dog")
    assert "labelled twice: annotator 11 on item 1" in refused(tasks, "export.json")
    twice = [*long[:3], (*long[0][:2], "dog"), *long[3:]]
    options = {"duplicates": "last"}
    same(tasks, "export.json", twice, duplicates="last", long_options=options)


@pytest.fixture
def short(votes):
    return [
        {
            "image": f"/photos/{item}.jpg",
            "id": item,
            "animal": label,
            "annotator": IDS[person],
            "annotation_id": place,
            "created_at": "2024-01-01T00:00:00Z",
            "updated_at": "2024-01-01T00:00:00Z",
            "lead_time": 2.5,
        }
        for place, (item, person, label) in enumerate(votes)
    ]


def test_the_short_export_finds_its_question(same, short, long):
    """What differs between two annotations of an item is an answer and not its data."""
    fit = same(short, "min.json", long)
    assert "Label Studio short export (17 annotations, question animal)" in fit.summary()


def test_the_short_export_as_csv(same, short, long):
    rows = [",".join(short[0]), *(",".join(map(str, row.values())) for row in short)]
    same("\n".join(rows), "export.csv", long)


def test_the_short_export_needs_a_question_without_disagreement(refused, same, short, long):
    agreed = [row for row in short if row["annotator"] == 11]
    text = refused(agreed, "min.json")
    assert "could be any of image, animal" in text
    assert "question='image'" in text
    wanted = [row for row in long if row[1] == 11]
    same(agreed, "min.json", wanted, question="animal")


def test_wrapped_labels_of_the_short_export(write, short):
    for row in short:
        row["animal"] = [{"rating": 4}] if row["animal"] == "dog" else {"choices": [2]}
    assert at.read_labels(write(short, "min.json")).scale.names == ["2", "4"]


def test_regions_of_the_short_export_are_refused(refused, same, short, long):
    boxes = [{**PLACES["rectanglelabels"], "rectanglelabels": ["Place"], "original_width": 600}]
    for row in short:
        del row["animal"]
        row["tag"] = boxes
    assert refused(short, "min.json").startswith("the regions of 'tag' (rectanglelabels) are not")
    for row, (_, _, label) in zip(short, long, strict=True):
        row["animal"] = label
    same(short, "min.json", long)
    assert "regions of 'tag'" in refused(short, "min.json", question="tag")


def test_regions_and_sets_of_choices_in_a_csv(refused, write, short):
    text = io.StringIO()
    writer = csv.DictWriter(text, [*short[0], "sentiment", "text"])
    writer.writeheader()
    for row in short:
        choices = ["good", "bad"] if row["annotator"] == 11 else ["bad"]
        span = [{**PLACES["labels"], "labels": ["Place"]}]
        cells = {"animal": json.dumps(span), "sentiment": json.dumps({"choices": choices})}
        writer.writerow({**row, **cells, "text": "x"})
    path = write(text.getvalue(), "export.csv")
    labels = at.read_labels(path)
    assert labels.scale.names == ['["bad", "good"]', '["bad"]']
    assert labels.items.to_pylist() == [1, 2, 3, 4, 5, 6]  # and not its text
    assert "regions of 'animal' (labels)" in refused(
        text.getvalue(), "export.csv", question="animal"
    )
