"""Every row that is read is used, or counted under the reason why it is not."""

import json

import pytest

import annotruth as at

NO_LABEL = "no label"
LONG = "item,annotator,label\n1,a,x\n1,b,y\n2,a,x\n2,b,x\n"
MTURK = (
    "HITId,WorkerId,AssignmentStatus,Answer.q\n"
    "1,a,Approved,x\n1,b,Submitted,y\n2,a,Rejected,x\n2,b,Approved,x\n2,c,Approved,\n"
)
TOLOKA = (
    "INPUT:u,OUTPUT:q,ASSIGNMENT:worker_id,ASSIGNMENT:status\n"
    "1,x,a,APPROVED\n1,y,b,APPROVED\n2,x,a,REJECTED\n2,x,b,SKIPPED\n"
)
REPORT = (
    "_unit_id,_worker_id,_golden,q,q_gold\n1,a,false,x,\n1,b,false,y,\n2,a,false,,\n2,b,false,x,\n"
)
RESULT = [{"type": "choices", "from_name": "q", "value": {"choices": ["x"]}}]
STUDIO = [
    {
        "id": 1,
        "data": {},
        "annotations": [
            {"completed_by": 1, "result": RESULT},
            {"completed_by": 2, "result": RESULT},
            {"completed_by": 3, "result": RESULT, "was_cancelled": True},
            {"completed_by": 4, "result": []},
        ],
    }
]
PRODIGY = [
    {"_input_hash": 1, "_task_hash": 1, "_session_id": who, "accept": ["x"], "answer": answer}
    for who, answer in (("a", "accept"), ("b", "accept"), ("c", "ignore"), ("d", "reject"))
]
ARGILLA = [
    {
        "id": "r",
        "fields": {},
        "responses": {
            "q": [
                {"user_id": who, "value": "x", "status": status}
                for who, status in (("a", "submitted"), ("b", "submitted"), ("c", "draft"))
            ]
        },
    }
]


@pytest.fixture
def write(tmp_path):
    def write(content, name):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "name", "options", "n_read", "counts"),
    [
        (LONG, "l.csv", {}, 4, {}),
        (LONG + "3,a,\n3,b,NA\n", "l.csv", {}, 6, {NO_LABEL: 2}),
        (LONG + "1,a,x\n", "l.csv", {}, 5, {"repeated": 1}),
        (LONG + "1,a,y\n", "l.csv", {"duplicates": "last"}, 5, {"replaced": 1}),
        (LONG + "1,a,y\n", "l.csv", {"duplicates": "keep"}, 5, {}),
        (LONG, "l.csv", {"drop": ["b"]}, 4, {"of annotators left out": 2}),
        (
            LONG + "1,a,y\n3,a,\n",
            "l.csv",
            {"sets": True},
            5,  # answers
            {NO_LABEL: 1},
        ),
        ("item,a,b\n1,x,y\n2,,x\n3,NA,x\n4,y,x\n", "w.csv", {}, 7, {"NA or the like": 1}),
        ("item,a,b\n1,-1,2\n2,1,2\n3,0,0\n", "w.csv", {}, 6, {"-1": 1}),
        (MTURK, "m.csv", {}, 5, {"rejected": 1, NO_LABEL: 1}),
        (TOLOKA, "t.csv", {}, 4, {"rejected or unfinished": 2}),
        (REPORT, "r.csv", {}, 4, {"without an answer": 1}),
        (json.dumps(STUDIO), "s.json", {}, 4, {"cancelled": 1, "without a label": 1}),
        ("\n".join(map(json.dumps, PRODIGY)), "p.jsonl", {}, 4, {"ignored": 1, "rejected": 1}),
        (json.dumps(ARGILLA), "a.json", {}, 3, {"discarded or draft": 1}),
    ],
)
def test_rows_add_up(write, content, name, options, n_read, counts):
    labels = at.read_labels(write(content, name), **options)
    assert labels.n_read == n_read == labels.n_labels + sum(counts.values())
    found = {**labels.unused, NO_LABEL: labels.n_dropped, "repeated": labels.n_repeated}
    assert {
        reason.partition(" by ")[0].partition(" (")[0]: n for reason, n in found.items() if n
    } == counts


def test_the_summary_and_saved_fits_count_rows(write, tmp_path):
    path = write(LONG + "1,a,y\n3,a,\n", "l.csv")
    fit = at.fit(path, "majority", duplicates="last", drop=["b"])
    lines = fit.summary().splitlines()
    for line in (
        "1 row had no label and was dropped",
        "1 row not used: replaced by a later label of the annotator",
        "2 rows not used: of annotators left out (`--drop`)",
        "rows: 6 read, 2 used",
    ):
        assert line in lines
    assert (fit.to_dict()["n_read"], sum(fit.to_dict()["unused"].values())) == (6, 3)
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").summary() == fit.summary()
    more = at.update(fit, [(9, "a", "x"), (2, "a", "y")], duplicates="last")
    assert (more.data.n_read, more.data.n_labels) == (8, 3)


def test_rejected_votes_of_a_batch_are_counted(write):
    rows = "1,a,Approved,m,n,left\n1,b,Rejected,m,n,left\n2,a,Approved,m,k,right\n"
    header = "HITId,WorkerId,AssignmentStatus,Input.left,Input.right,Answer.winner\n"
    data = at.read_comparisons(write(header + rows, "m.csv"))
    assert (data.n_read, data.n_comparisons, data.unused) == (3, 2, {"rejected": 1})
