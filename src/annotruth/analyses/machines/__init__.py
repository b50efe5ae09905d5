"""Machines among the annotators: language models and classifiers whose labels stand beside people's.

They are compared with the people's consensus, which is inferred without them; machines that err
together count less; and each is tested whether it may replace a person.
"""
