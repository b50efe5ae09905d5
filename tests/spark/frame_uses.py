"""Uses of the frames of a fit that no longer exists."""

import gc

import annotruth as at


def annotators(votes, engine):
    return at.GPM(engine=engine).fit(votes).result_.annotators().toPandas()


def items(votes, engine):
    frame = at.GPM(engine=engine).fit(votes).result_.items()
    gc.collect()
    return frame.toPandas()


def labels(votes, engine):
    frame = at.GPM(engine=engine).fit(votes).result_.labels()
    gc.collect()
    return frame.toPandas()


def after_the_with_block(votes, engine):
    with at.fit(votes, "gpm", engine=engine) as fit:
        frame = fit.items()
    del fit
    gc.collect()
    return frame.toPandas()


def derived_join(votes, engine):
    fit = at.GPM(engine=engine).fit(votes).result_
    truths = fit.items().withColumnRenamed("label", "truth").select("item", "truth")
    frame = fit.labels().join(truths, "item").where("label = truth").select("item").distinct()
    del fit, truths
    gc.collect()
    return frame.toPandas()


USES = (annotators, items, labels, after_the_with_block, derived_join)
"""Functions of a Spark frame of labels and an engine; each returns rows of pandas."""


def count_rows(votes):
    """Return how many rows each use returns, given the labels in memory."""
    fit = at.fit(votes, "gpm")
    n = {"annotators": fit.data.n_annotators, "labels": fit.data.n_labels}
    return {use.__name__: n.get(use.__name__, fit.data.n_items) for use in USES}
