"""Which columns hold labels, items and annotators, where their names do not say it."""

import random

import pytest

import annotruth as at
from annotruth.errors import InputError, messages_for

PEOPLE = [f"A{n}WORKERID{n}X" for n in range(8)]
COMMENTS = ("it was hard to say which one", "I like this very much", "a nice task, thank you", "")


def rows(seed=1):
    """Each of 20 items has labels of 4 people, and whatever else an export has."""
    draw = random.Random(seed)
    for item in range(20):
        truth = draw.choice(["yes", "no"])
        for n in draw.sample(range(8), 4):
            yield {
                "item": f"item{item}",
                "person": PEOPLE[n],
                "relevant": truth if draw.random() < 0.8 else draw.choice(["yes", "no"]),
                "fluent": draw.randint(1, 5),
                "comment": draw.choice(COMMENTS),
                "hiddeninput": f"{draw.random():.9f}",
                "age": 20 + 3 * n,
                "seconds_taken": draw.randint(3, 900),
                "when": f"2024-03-0{draw.randint(1, 9)} 10:{draw.randint(10, 59)}:11",
                "link": f"https://example.org/{item}.jpg",
                "batch": "batch 7",
            }


ROWS = list(rows())
REST = ("comment", "hiddeninput", "age", "seconds_taken", "when", "link", "batch")


def csv(**columns):
    """A table with these columns, each from the named value of the rows."""
    lines = [",".join(columns)]
    lines += [",".join(f'"{row[key]}"' for key in columns.values()) for row in ROWS]
    return "\n".join(lines) + "\n"


def long(label):
    return [(row["item"], row["person"], row[label]) for row in ROWS]


EXPORTS = {
    "mturk": ("HITId", "WorkerId", "Answer.", "answer relevant"),
    "crowdflower": ("_unit_id", "_worker_id", "", "question relevant"),
    "toloka": ("ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "OUTPUT:", "output relevant"),
}


def export(platform, *questions):
    item, person, prefix, _ = EXPORTS[platform]
    return csv(
        **{item: "item", person: "person"}, **{f"{prefix}{name}": name for name in questions}
    )


@pytest.mark.parametrize("platform", EXPORTS)
@pytest.mark.parametrize("other", REST)
def test_what_is_no_label_is_not_taken_for_a_question(write, platform, other):
    path = write(export(platform, other, "relevant"), "export.csv")
    fit = at.read_labels(path)
    assert fit.n_labels == 80
    assert fit.scale.names == ["no", "yes"]
    assert EXPORTS[platform][3] in fit.read_as
    if platform != "crowdflower":  # whose other columns are often data of the unit
        assert f"not {other}, by their values; else pass question='NAME'" in fit.read_as


@pytest.mark.parametrize("platform", EXPORTS)
def test_two_questions_are_shown_with_values_and_options(write, platform):
    path = write(export(platform, "comment", "relevant", "fluent", "age"), "export.csv")
    with pytest.raises(InputError) as error:
        at.read_labels(path)
    values = [", ".join(str(row[name]) for row in ROWS[:3]) for name in ("relevant", "fluent")]
    assert f"relevant ({values[0]}), fluent ({values[1]}): choose one with" in str(error.value)
    assert "or question='fluent'; fit" in str(error.value)
    assert list(at.fit(path, "gpm", question="all")) == ["relevant", "fluent"]
    assert at.fit(path, "gpm", question="comment").data.n_categories == 3  # if it is asked for


def test_the_label_of_a_long_table_is_found_by_its_values(write, same):
    text = csv(item="item", worker="person", age="age", remark="comment", finding="relevant")
    fit = same(text, "long.csv", long("relevant"))
    assert fit.data.read_as == (
        "item = item, annotator = worker, label = finding (not age, remark, by their values; else "
        "pass columns={'label': 'NAME'})"
    )
    path = write(text, "long.csv")
    assert at.fit(path, "gpm", memory="1GB").data.read_as == fit.data.read_as
    frame = [dict(zip(text.splitlines()[0].split(","), row, strict=True)) for row in cells(text)]
    assert at.fit(frame, "gpm").data.read_as == fit.data.read_as


def refusal(read, path):
    """The message of a command on this file."""
    with messages_for("command line"), pytest.raises(InputError) as error:
        read(path)
    return str(error.value)


def cells(text):
    return [line.strip('"').split('","') for line in text.splitlines()[1:]]


def test_of_several_labels_one_is_chosen_by_option(write):
    path = write(csv(item="item", worker="person", rel="relevant", flu="fluent"), "long.csv")
    message = refusal(at.read_labels, path)
    assert "the label may be rel (" in message
    assert "pass `--columns label=rel` or pass" in message
    assert "with `--question all`; see `annotruth open " in message
    assert at.read_labels(path, question="flu").n_categories == 5
    assert list(at.fit(path, "gpm", question="all")) == ["rel", "flu"]


@pytest.mark.parametrize(
    ("names", "proposed"),
    [
        (("img_name", "coder_nr", "finding"), "item=img_name,annotator=coder_nr,label=finding"),
        (("who_did_it", "page, url", "x"), "item=who_did_it,annotator=page"),
        (("c1", "c2", "c3"), "--columns item=c1,annotator=c2,label=c3"),
    ],
)
def test_columns_without_known_names_are_proposed_and_not_taken(write, names, proposed):
    item, person, label = names
    if item.startswith("who"):
        item, person = person, item
        proposed = """--columns '"item=page, url",annotator=who_did_it,label=x'"""
    columns = {item: "item", "at": "when", label: "relevant", "why": "comment", person: "person"}
    text = csv(**columns).replace("page, url", '"page, url"', 1)
    assert proposed in refusal(at.read_labels, write(text, "t.csv"))
    chosen = {"item": item, "annotator": person, "label": label}
    assert at.read_labels(write(text, "t.csv"), columns=chosen).n_labels == 80


@pytest.mark.parametrize(
    "text",
    [
        "item,annotator,size\n1,ann,3\n1,bob,3\n",  # too few rows to tell
        csv(item="item", annotator="person", remark="comment", hiddeninput="hiddeninput"),
        csv(id="hiddeninput", text="item", stars="relevant"),  # no one gave a second label
        "1,ann,2\n1,bob,3\n2,ann,2\n2,bob,3\n3,ann,2\n3,bob,3\n4,ann,2\n",  # no names
    ],
)
def test_nothing_is_proposed_without_evidence(write, text):
    with pytest.raises(InputError, match="no column for the") as error:
        at.read_labels(write(text, "t.csv"))
    assert "by their values" not in str(error.value)


def test_columns_of_comparisons_are_proposed(write):
    draw = random.Random(3)
    lines = ["first_system,other_one,coder_nr,best"]
    for _ in range(60):
        left, right = draw.sample(["alpha", "beta", "gamma", "delta"], 2)
        lines.append(
            f"{left},{right},{draw.choice(PEOPLE)},{draw.choice([left, right, 'neither'])}"
        )
    path = write("\n".join(lines), "votes.csv")
    columns = "left=first_system,right=other_one,annotator=coder_nr,winner=best"
    assert f"`--columns {columns}`" in refusal(at.read_comparisons, path)
    options = dict(pair.split("=") for pair in columns.split(","))
    assert at.read_comparisons(path, columns=options).n_comparisons == 60
