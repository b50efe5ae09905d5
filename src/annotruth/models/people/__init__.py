"""What labels say about the people who gave them: accuracy, carelessness, verdicts.

A second stage after a model of items has been fitted: the items' posteriors are read, not changed. Each label
is assessed by what the labels of the others say about its item (`annotruth.models.people.passes`), annotators
by how well response strategies explain their labels (`annotruth.models.people.posterior`), and verdicts
rest on both and on plain counts (`annotruth.models.people.verdicts`).
"""

from annotruth.models.people.passes import ItemStates
from annotruth.models.people.verdicts import People, assess_people

__all__ = ["ItemStates", "People", "assess_people"]
