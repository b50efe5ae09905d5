"""Reports of CrowdFlower and Appen."""

import csv
import io

import pytest

import annotruth as at

OWN = (
    *("_unit_id", "_created_at", "_golden", "_id", "_missed", "_started_at", "_tainted"),
    *("_channel", "_trust", "_worker_id", "_country", "_region", "_city", "_ip"),
)


def report(votes, *, answers=("animal",), gold=None, gold_name="animal_gold", tainted=()):
    """A full report: the platform's columns, the answers, and the data of the unit."""
    text = io.StringIO()
    names = [*OWN, *answers, gold_name, "name", "text"]
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    for place, (item, person, label) in enumerate(votes):
        row = {
            "_unit_id": item,
            "_created_at": "4/1/2026 10:00:00",
            "_golden": str(item in (gold or {})).lower(),
            "_id": 1000 + place,
            "_tainted": str((item, person) in tainted).lower(),
            "_trust": 0.9,
            "_worker_id": person,
            gold_name: (gold or {}).get(item, ""),
            "name": f"photo {item}",
            "text": "what, is\nthis?",
        }
        writer.writerow(row | dict.fromkeys(answers, label))
    return text.getvalue()


def test_a_full_report(same, votes):
    fit = same(report(votes), "f123.csv", votes)
    assert fit.data.read_as == (
        "CrowdFlower or Appen report (17 judgments, items by _unit_id, question animal)"
    )


@pytest.mark.parametrize("gold_name", ["animal_gold", "animal:gold"])
def test_answers_of_test_questions_are_gold(same, votes, gold_name):
    text = report(votes, gold={1: "dog", 2: "cat"}, gold_name=gold_name)
    fit = same(text, "f.csv", votes, gold={1: "dog", 2: "cat"})
    assert "2 truths taken as gold" in fit.data.read_as


def test_several_accepted_answers_are_not_gold(same, votes):
    fit = same(report(votes, gold={1: "dog\ncat", 2: "cat"}), "f.csv", votes, gold={2: "cat"})
    assert "1 test question with several accepted answers is not gold" in fit.data.read_as


def test_an_answer_differs_between_judgments_and_data_of_a_unit_do_not(same, votes):
    """Without a gold column, as CrowdTruth's own samples have it."""
    rows = ["_unit_id,_id,_worker_id,_started_at,_created_at,input,Answer.output"]
    rows += [f"{item},7,{person},a,b,-{item},{label}" for item, person, label in votes]
    fit = same("\n".join(rows), "f.csv", votes)
    assert "question Answer.output" in fit.data.read_as


def test_several_questions_are_listed_with_an_option_to_paste(same, refused, votes):
    text = report(votes, answers=("animal", "how sure"))
    assert refused(text, "f.csv") == (
        "there are several questions, animal (cat, cat, dog), how sure (cat, cat, dog): choose one "
        "with question='animal' or question='how sure'; fit takes all of them with question='all'; "
        "see annotruth.open_labels"
    )
    same(text, "f.csv", votes, question="how sure")
    same(text, "f.csv", votes, columns={"label": "animal"})
    assert "no question 'size'" in refused(text, "f.csv", question="size")


def test_a_question_nobody_disagrees_on_has_to_be_named(refused, same):
    votes = [(1, "ann", "cat"), (1, "bob", "cat"), (2, "ann", "dog")]
    text = report(votes, gold_name="comment")
    assert "could be any of animal, name, text" in refused(text, "f.csv")
    same(text, "f.csv", votes, question="animal")
    rows = "1,ann,NA,cat\n1,bob,NA,cat\n2,ann,,dog\n"
    same(f"_unit_id,_worker_id,note,animal\n{rows}", "f.csv", votes)  # the only column with values


def test_ticked_choices_are_a_set(write):
    votes = [(1, "ann", "cat\ndog"), (1, "bob", "dog\ncat"), (2, "ann", "dog")]
    labels = at.read_labels(write(report(votes), "f.csv"))
    assert labels.scale.names == ['["cat", "dog"]', '["dog"]']
    assert labels.scale.set_labels.to_pylist() == ["cat", "dog"]
    assert "2 answers of several labels" in labels.read_as


def test_numbers_are_numbers_and_tainted_judgments_are_counted(same, scores):
    fit = same(report(scores, tainted={(1, "ann"), (2, "cy")}), "f.csv", scores)
    assert fit.data.scale.is_ordinal
    assert "2 tainted judgments included" in fit.data.read_as


def test_items_by_another_column(same, votes):
    named = [(f"photo {item}", person, label) for item, person, label in votes]
    same(report(votes), "f.csv", named, columns={"item": "name"})


def test_an_aggregated_report_is_refused(refused):
    text = (
        "_unit_id,_golden,_unit_state,_trusted_judgments,_last_judgment_at,animal,animal:confidence,"
        "text\n1,false,finalized,3,4/1/2026,cat,0.66,x\n"
    )
    assert "aggregated report" in refused(text, "a.csv")
    assert "download the full report" in refused(text, "a.csv")


def test_a_report_with_the_names_of_a_long_table_is_not_one(same, votes):
    """Data of the unit are often called text, and answers sentiment."""
    text = report(votes, answers=("sentiment",), gold_name="sentiment_gold")
    text = text.replace("_country", "user").replace(",name,", ",item,")
    assert "question sentiment" in same(text, "f.csv", votes).data.read_as


def test_content_of_units(write, votes):
    path = write(report(votes), "f.csv")
    labels = at.read_labels(path, content=["name"])
    assert labels.covariates.items["name"].to_pylist() == [f"photo {n}" for n in range(1, 7)]
    with pytest.raises(at.InputError, match="no column 'picture' for the content"):
        at.read_labels(path, content=["picture"])
