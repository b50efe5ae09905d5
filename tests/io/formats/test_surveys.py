"""Grids of survey tools: which rows and columns are answers."""

import pytest

import annotruth as at

_ANN = {("Q5_1", "R_1"): 4, ("Q5_2", "R_1"): 2, ("Q5_1", "R_2"): 5, ("Q5_2", "R_2"): 2}
_HEAD = "StartDate,EndDate,Status,RecordedDate,ResponseId,Q5_1,Q5_2,Q5_3_TEXT,Q8\n"
_TEXTS = "Start Date,End Date,Response Type,Recorded Date,Response ID,Rate - a,Rate - b,Other,Age\n"
_IDS = ",".join('"{""ImportId"":""x""}"' for _ in range(9)) + "\n"
_ROWS = "d,d,IP Address,d,R_1,4,2,no,30\nd,d,IP Address,d,R_2,5,2,,31\n"


def _said(labels):
    return {tuple(row.values())[:2]: row["label"] for row in labels.to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("headers", "note"),
    [
        (_TEXTS + _IDS, "2 header rows left out"),
        (_IDS, "1 header row left out"),
        ("", "not read: Q5_3_TEXT, Q8"),
    ],
)
def test_header_rows_are_left_out_as_far_as_they_are_there(write, headers, note):
    labels = at.read_labels(write(_HEAD + headers + _ROWS, "q.csv"))
    assert _said(labels) == _ANN
    assert note in labels.read_as


def test_previews_are_left_out_and_counted(write):
    rows = "d,d,Survey Preview,d,R_0,1,1,,9\n" + _ROWS
    labels = at.read_labels(write(_HEAD + _TEXTS + _IDS + rows, "q.csv"))
    assert _said(labels) == _ANN
    assert "1 preview left out" in labels.read_as


def test_boxes_and_fields_are_no_grid(refused):
    head = "Timestamp,Tick [a],Tick [b],Name [first],Name [last]\n"
    rows = "d,Yes,,Ann,X\nd,,Yes,Bob,Y\nd,Yes,Yes,Cy,Z\n"
    assert "has no question whose answers are of several items" in refused(head + rows, "g.csv")


def test_all_grids_are_questions(write):
    head = "Timestamp,Email Address,Fun [a],Fun [b],Use [a],Use [b]\n"
    path = write(head + "d,ann,1,2,3,3\nd,bob,1,3,2,3\nd,cy,1,2,3,1\n", "g.csv")
    with pytest.raises(at.InputError, match=r"several questions, Fun, Use: .*question='Fun'"):
        at.read_labels(path)
    assert at.read_labels(path, question="Use").n_labels == 6
    assert list(at.fit(path, question="all")) == ["Fun", "Use"]


def test_respondents_are_numbered_where_nothing_tells_them_apart(write):
    head = "ID,Start time,Completion time,Email,Name,a,b\n"
    rows = "1,t,t,anonymous,,no,yes\n2,t,t,anonymous,,no,no\n"
    labels = at.read_labels(write(head + rows, "m.csv"))
    assert labels.annotators.to_pylist() == [1, 2]
    assert "annotators by ID" in labels.read_as


def test_hostile_names_come_back_as_they_are(write):
    names = ['=HYPERLINK("x")', "<script>alert(1)</script>", "é" * 3000]
    cells = ['"Rate [{}]"'.format(name.replace('"', '""')) for name in names]
    text = f"Timestamp,Email Address,{','.join(cells)}\nd,ann,1,2,1\nd,bob,2,2,1\n"
    labels = at.read_labels(write(text, "g.csv"))
    assert labels.items.to_pylist() == names


def test_a_file_of_no_survey_tool_is_refused(refused):
    assert "no export of a survey tool" in refused("a,b\n1,2\n", "l.csv", input_format="survey")
