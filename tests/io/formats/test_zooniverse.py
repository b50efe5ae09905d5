"""Zooniverse's classification exports."""

import csv
import io
import json

import pytest

import annotruth as at

NAMES = (
    *("classification_id", "user_name", "user_id", "user_ip", "workflow_id", "workflow_name"),
    *("workflow_version", "created_at", "gold_standard", "expert", "metadata", "annotations"),
    *("subject_data", "subject_ids"),
)


def question(value, key="T0", label="What is it?"):
    return {"task": key, "task_label": label, "value": value}


def survey(*choices):
    answers = {"HOWMANY": "1", "DOING": ["MOVING"]}
    return {
        "task": "T0",
        "value": [{"choice": each, "answers": answers, "filters": {}} for each in choices],
    }


def row(place, item, person, *annotations, **more):
    return {
        "classification_id": 100 + place,
        "user_name": person,
        "user_ip": f"hash-of-{person}",
        "workflow_id": 77,
        "metadata": json.dumps({"viewport": {"width": 9}}),
        "annotations": json.dumps(annotations),
        "subject_data": json.dumps({str(item): {"retired": None, "Filename": f"{item}.jpg"}}),
        "subject_ids": item,
        **more,
    }


def table(rows, names=NAMES):
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def rows_of(votes, make=question):
    return [row(n, item, person, make(label)) for n, (item, person, label) in enumerate(votes)]


@pytest.mark.parametrize("make", [question, survey], ids=["question", "survey"])
def test_questions_and_surveys(same, votes, make):
    fit = same(table(rows_of(votes, make)), "c.csv", votes)
    assert fit.data.read_as == (
        "Zooniverse classifications (17 classifications, items by subject, task T0)"
    )


def test_people_without_a_login_are_named_by_the_platform_or_by_their_address(same, votes):
    rows = rows_of(votes)
    names = {"ann": "not-logged-in-05acb4", "bob": "hash-of-bob", "cy": "cy"}
    for each in rows:
        if each["user_name"] == "bob":
            each["user_name"] = ""
        elif each["user_name"] == "ann":
            each["user_name"] = "not-logged-in-05acb4"
    same(table(rows), "c.csv", [(item, names[person], label) for item, person, label in votes])


def test_older_exports_name_the_subject_in_its_data(same, votes):
    same(table(rows_of(votes), NAMES[:-1]), "c.csv", votes)


def test_several_tasks_need_the_option_question(same, refused, votes):
    rows = [
        row(n, item, person, question(label), question("Yes", "T1", "Sure?"), question(None, "T2"))
        for n, (item, person, label) in enumerate(votes)
    ]
    assert refused(table(rows), "c.csv") == (
        "there are several tasks, T0 (cat, cat, dog), T1 (Yes, Yes, Yes): choose one with "
        "question='T0' or question='T1'; fit takes all of them with question='all'; see "
        "annotruth.open_labels"
    )
    same(table(rows), "c.csv", votes, question="T0")


def test_the_same_task_of_another_workflow_is_another_question(same, refused, votes):
    rows = rows_of(votes)
    rows.append(row(99, 1, "dan", question("zebra"), workflow_id=78))
    assert "several tasks, 77:T0 (cat, cat, dog), 78:T0 (zebra): choose" in refused(
        table(rows), "c.csv"
    )
    same(table(rows), "c.csv", votes, question="77:T0")


def test_tasks_within_a_task_are_found(same, votes):
    rows = [
        row(n, item, person, {"task": "T9", "value": [question(label), question(None, "T1")]})
        for n, (item, person, label) in enumerate(votes)
    ]
    same(table(rows), "c.csv", votes)


def test_several_animals_are_a_set(write):
    rows = [row(1, 1, "ann", survey("CAT", "DOG")), row(2, 1, "bob", survey("DOG", "CAT"))]
    rows.append(row(3, 1, "cy", question(["DOG"])))
    labels = at.read_labels(write(table(rows), "c.csv"))
    assert labels.scale.names == ['["CAT", "DOG"]', '["DOG"]']


def test_pictures_before_an_answer_are_left_out(write):
    answers = ["![a.png](https://x.org/a.png) Smooth ", "![only](b.png)"]
    rows = [row(n, n, "ann", question(answer)) for n, answer in enumerate(answers)]
    assert at.read_labels(write(table(rows), "c.csv")).scale.names == ["![only](b.png)", "Smooth"]


def test_drawings_are_refused_by_name(refused, same, votes):
    mark = {"x": 1.5, "y": 2.5, "tool": 0, "frame": 0, "details": [], "tool_label": "Crater"}
    rows = [row(1, 1, "ann", question([mark], "T1")), row(2, 1, "bob", question([], "T1"))]
    text = refused(table(rows), "c.csv")
    assert text.startswith("the regions of 'T1' (drawing) are not classes")
    rows += rows_of(votes)
    same(table(rows), "c.csv", votes)
    assert "regions of 'T1'" in refused(table(rows), "c.csv", question="T1")


def test_gold_standards_are_known_truths(same, votes):
    rows = rows_of(votes)
    rows.append(row(50, 2, "expert", question("dog"), gold_standard="true"))
    fit = same(table(rows), "c.csv", votes, gold={2: "dog"})
    assert "1 truth taken as gold" in fit.data.read_as


def test_another_wording_is_announced(write, votes):
    rows = rows_of(votes)
    rows[0]["annotations"] = json.dumps([question("cat", label="What was it?")])
    assert "worded in 2 ways" in at.read_labels(write(table(rows), "c.csv")).read_as


@pytest.mark.parametrize("cell", ["[{", "7", '{"task": 1}', "[[]]", "[" * 200 + "]" * 200])
def test_bad_cells_are_refused(refused, votes, cell):
    rows = rows_of(votes)
    rows[3]["annotations"] = cell
    refused(table(rows), "c.csv")


def test_a_row_that_is_not_json_is_named(refused, votes):
    rows = rows_of(votes)
    rows[3]["annotations"] = "[{"
    assert "annotations in row 4 is '[{', which is not JSON" in refused(table(rows), "c.csv")
