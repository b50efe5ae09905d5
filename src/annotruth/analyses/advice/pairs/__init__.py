"""Which pairs of items to compare next, whom to ask, and how many comparisons a target needs.

`annotruth.analyses.advice.pairs.advice.advise_pairs` takes a fit of any model of pair comparisons and never
fits again. `annotruth next` and `annotruth plan` show its advice.
"""
