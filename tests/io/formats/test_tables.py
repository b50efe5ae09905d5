"""MTurk's and Toloka's tables."""

import pyarrow as pa
import pyarrow.parquet
import pytest

import annotruth as at


def mturk(votes, *, more=""):
    rows = ["HITId,HITTypeId,AssignmentId,WorkerId,AssignmentStatus,Input.url,Answer.animal" + more]
    rows += [
        f"H{item},T,A{place},{person},Approved,http://x/{item}.jpg,{label}" + ("," if more else "")
        for place, (item, person, label) in enumerate(votes)
    ]
    return rows


@pytest.fixture
def hits(votes):
    return [(f"H{item}", person, label) for item, person, label in votes]


def test_a_batch_of_mturk(same, votes, hits):
    fit = same("\n".join(mturk(votes)), "batch.csv", hits)
    assert fit.data.read_as == "MTurk batch results (17 assignments, items by HITId, answer animal)"


def test_rejected_assignments_are_left_out(same, votes, hits):
    rows = mturk(votes, more=",Reject")
    rows.append("H3,T,A99,cy,Rejected,http://x/3.jpg,dog,")
    rows.append("H4,T,A98,dan,Submitted,http://x/3.jpg,dog,all the same")
    fit = same("\n".join(rows), "batch.csv", hits)
    assert "2 rejected left out" in fit.data.read_as


def test_items_of_mturk_by_an_input(same, votes):
    urls = [(f"http://x/{item}.jpg", person, label) for item, person, label in votes]
    same("\n".join(mturk(votes)), "batch.csv", urls, columns={"item": "Input.url"})


def test_several_questions_of_mturk_need_the_option_question(same, refused, votes, hits):
    rows = mturk(votes, more=",Answer.note")
    fit = same("\n".join(rows), "b.csv", hits)
    assert "answer animal (not note, by their values; else pass" in fit.data.read_as
    rows = mturk(votes, more=",Answer.sure")
    text = "\n".join([rows[0], *(f"{row}{n % 3}" for n, row in enumerate(rows[1:]))])
    assert refused(text, "b.csv") == (
        "there are several questions, animal (cat, cat, dog), sure (0, 1, 2): choose one with "
        "question='animal' or question='sure'; fit takes all of them with question='all'; see "
        "annotruth.open_labels"
    )
    same(text, "b.csv", hits, question="animal")
    same(text, "b.csv", hits, question="Answer.animal")
    same(text, "b.csv", hits, columns={"label": "Answer.animal"})


def test_mturk_without_a_question_is_refused(refused):
    text = refused("HITId,WorkerId,Title\n1,a,x\n", "b.csv")
    assert "no column starts with 'Answer.' (found: HITId, WorkerId, Title)" in text
    assert "columns={'item': 'HITId', 'annotator': 'WorkerId', 'label': 'NAME'}" in text
    text = refused("HITId,WorkerId,Answer.x\n", "b.csv")
    assert "no rows" in text
    assert "no column 'Input.z'" in refused(
        "HITId,WorkerId,Answer.x\n1,a,x\n", "b.csv", columns={"item": "Input.z"}
    )


HEADER = (
    "INPUT:image\tOUTPUT:animal\tGOLDEN:animal\tHINT:text\tASSIGNMENT:worker_id\tASSIGNMENT:status"
)


def toloka(votes, golden=()):
    return [
        HEADER,
        *(
            f"p{item}\t{label}\t{dict(golden).get(item, '')}\t\t{person}\tAPPROVED"
            for item, person, label in votes
        ),
    ]


@pytest.fixture
def photos(votes):
    return [(f"p{item}", person, label) for item, person, label in votes]


def test_assignments_of_toloka_with_golden_tasks(same, votes, photos):
    rows = toloka(votes, golden=[(1, "dog"), (2, "cat")])
    rows += ["p3\tdog\t\t\tcy\tREJECTED", "p3\t\t\t\tdan\tSKIPPED", "\t\t\t\t\t"]
    fit = same("\n".join(rows), "assignments.tsv", photos, gold={"p1": "dog", "p2": "cat"})
    assert "2 rejected or unfinished left out, 2 golden tasks are gold" in fit.data.read_as
    assert "output animal" in fit.data.read_as


def test_two_golden_labels_are_refused(refused, votes):
    rows = toloka(votes, golden=[(1, "dog")])
    rows.append("p1\tcat\tcat\t\tdan\tAPPROVED")
    assert "item 'p1' has two golden labels" in refused("\n".join(rows), "a.tsv")


def test_several_inputs_of_toloka_need_the_option_columns(same, refused, votes, photos):
    rows = [row.split("\t") for row in toloka(votes)]
    names = [*rows[0], "INPUT:page", "ASSIGNMENT:task_id"]
    more = [[*row, "7", f"t{row[0]}"] for row in rows[1:]]
    text = "\n".join("\t".join(row) for row in [names, *more])
    same(text, "a.tsv", [(f"t{item}", person, label) for item, person, label in photos])
    same(text, "a.tsv", photos, columns={"item": "INPUT:image"})
    without = text.replace("ASSIGNMENT:task_id", "other")
    assert "INPUT:image, INPUT:page: pass columns" in refused(without, "a.tsv")


def test_columns_of_crowd_kit_are_a_long_table(same, votes):
    rows = ["task\tworker\tlabel", *("\t".join(map(str, vote)) for vote in votes)]
    fit = same("\n".join(rows), "crowd.tsv", votes)
    assert fit.data.read_as == "item = task, annotator = worker, label = label"


def test_toloka_as_parquet(tmp_path, votes, photos):
    item, person, label = zip(*photos, strict=True)
    table = pa.table(
        {"INPUT:image": item, "OUTPUT:animal": label, "ASSIGNMENT:worker_id": person, "x": item}
    )
    path = tmp_path / "assignments.parquet"
    pa.parquet.write_table(table, path)
    assert at.fit(path).labels().equals(at.fit(photos).labels())
