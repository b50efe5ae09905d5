"""Which items need labels, whom to ask, whom to drop, and how many labels a target needs.

`annotruth.analyses.advice.advice.advise` takes a fit of any model and never fits again. The report,
`annotruth fit --keep`, `annotruth next` and `annotruth plan` all show its advice.
"""
