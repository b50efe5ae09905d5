"""Headings of the tables' columns, and a sentence on each that the page shows as a tip."""

from __future__ import annotations

from annotruth.models.base_fit import SPAMMER_BELOW, Readout

HEADINGS: dict[str, tuple[str, str]] = {
    # annotators
    "annotator": ("Annotator", "opens with confusion matrix and labels"),
    "confusion": ("Confusion", "confusion matrix: rows are recovered labels, columns the labels given; a stronger color is more often; the diagonal is agreement"),
    "accuracy": ("Accuracy", "probability that a label of theirs is the right one"),
    "accuracy_low": ("Accuracy from", "lower end of the 95% interval"),
    "accuracy_high": ("Accuracy to", "upper end of the 95% interval"),
    "reliability": ("Reliability", "probability that a label of theirs is serious (or right), with its 95% interval where the model gives one"),
    "low": ("Reliability from", "lower end of the 95% interval"),
    "high": ("Reliability to", "upper end of the 95% interval"),
    "behavior": ("Behavior", "how they label: serious, what they do instead, or what was noticed"),
    "p_spammer": ("P spammer", "probability of being careless (serious less than half of the time) or consistently wrong"),
    "evidence": ("Evidence", "log10 of how much their labels raised the odds of a spammer: 2 is a hundred to one for it, -3 a thousand to one against"),
    "agreement": ("Agreement", "with the others' labels: 1 if they predict the labels exactly, 0 for the own labels shuffled over the own items"),
    "matches": ("Matches", "share of their labels that are the recovered label"),
    "verdict": ("Verdict", "keep, drop, unsure or too few labels: the rules are above the table"),
    "ask": ("Ask", "whether to give them more items"),
    "reason": ("Reason", "the reason for the verdict"),
    "ability": ("Ability", "0 is guessing, below 0 is worse than guessing; the probability of a right label rises with ability / difficulty"),
    "weight": ("Weight", "how much a label of theirs counts; the more they agree with the others, the more"),
    "noise": ("Noise", "standard deviation of their serious labels on an item of usual difficulty, in steps of the scale"),
    "bias": ("Bias", "how far their labels lie above the others', in steps of the scale"),
    "bias_std": ("Bias std", "standard error of the bias"),
    "inconsistency": ("Inconsistency", "standard deviation of their labels around score and bias, in steps of the scale"),
    "inconsistency_std": ("Inconsistency std", "standard error of the inconsistency"),
    "at_floor": ("At floor", "whether the inconsistency is at the least value that the model allows"),
    "sensitivity": ("Sensitivity", "how often they are above a threshold of the scale when the truth is; the mean over thresholds"),
    "specificity": ("Specificity", "how often they are below a threshold of the scale when the truth is; the mean over thresholds"),
    "informedness": ("Informedness", "sensitivity + specificity - 1: 1 is perfect, 0 is guessing"),
    # items
    "item": ("Item", "opens with its labels and why it has this label"),
    "n_labels": ("Labels", "number of labels"),
    "distribution": ("Distribution", "recovered distribution over the categories"),
    "given": ("Given", "how often each category was given"),
    "label": ("Label", "the recovered label: the most likely category"),
    "expectation": ("Score", "the recovered score, with its 95% interval where the model gives one"),
    "confidence": ("Confidence", "the probability of the recovered label"),
    "confidence_low": ("Confidence from", "lower end of the confidence's 95% interval"),
    "confidence_high": ("Confidence to", "upper end of the confidence's 95% interval"),
    "spread": ("Difficulty", "how even the recovered distribution is: 0% when one category has it all, 100% when all are equal"),
    "entropy": ("Difficulty", "entropy of the recovered distribution: 0 when one category has it all"),
    "disputed": ("Disputed", "whether at most one vote in ten supports the label: is equal to it, or on a scale not above it, or not below it"),
    "score_low": ("Score from", "lower end of the score's 95% interval"),
    "score_high": ("Score to", "upper end of the score's 95% interval"),
    "p_leads": ("P top label", "probability that the label is the true top label"),
    "may_lead": ("May lead", "the fewest categories that hold the top label with 95% probability"),
    "difficulty": ("Noise factor", "by how much the item makes labels less reliable: 1 is usual, 2 is twice as noisy"),
    "ambiguity": ("Ambiguity", "standard deviation that the item itself adds to labels, in steps of the scale"),
    "std": ("Std", "standard deviation of the item's labels"),
    "status": ("Status", "whether more labels would help: the rules are above the table"),
    "add": ("Add", "number of labels to add in the next round"),
    "why": ("Why", "the reason for the status"),
    # doubtful labels
    "doubtful": ("Doubtful", f"number of their labels with p serious below {SPAMMER_BELOW}"),
    "share": ("Of theirs", "share of their labels that are doubtful"),
    "most_common": ("Most common", "the most common pair among them: label given → label recovered, and how often"),
}  # fmt: skip
"""The heading of each column and the tip on it."""

RANK_HEADINGS: dict[str, tuple[str, str]] = {
    # items
    "item": ("Item", "opens with whom it was compared with"),
    "n_comparisons": ("Votes", "number of comparisons"),
    "score": ("Score", "with its 95% interval; the first lines above say what a difference of 1 means"),
    "low": ("From", "lower end of the 95% interval"),
    "high": ("To", "upper end of the 95% interval"),
    "rank": ("Rank", "1 is best, with its 95% interval"),
    "rank_low": ("Rank from", "best rank in the 95% interval"),
    "rank_high": ("Rank to", "worst rank in the 95% interval"),
    "p_best": ("P best", "probability that its score is the highest"),
    "part": ("Part", "the connected part of the graph of comparisons: scores of different parts cannot be compared"),
    "share": ("Won", "share of its comparisons that it won; a tie counts as half"),
    "won": ("Wins", "how often it was preferred"),
    "lost": ("Losses", "how often the other item was preferred"),
    "tied": ("Ties", "how often neither was preferred"),
    # annotators
    "annotator": ("Annotator", "opens with their comparisons"),
    "reliability": ("Reliability", "probability that a comparison of theirs is serious, with its 95% interval"),
    "behavior": ("Behavior", "what they do when they are not serious, or serious"),
    "verdict": ("Verdict", "keep, drop, unsure or too few votes: the rules are above the table"),
    "evidence": ("Evidence", "what the behavior was concluded from"),
    "side_bias": ("Side bias", "log odds in favor of the left item with its 95% interval: 0 is none, below 0 is in favor of the right one"),
    "sharpness": ("Sharpness", "how closely they follow the scores: 1 is usual, 2 is twice as decided"),
    "tie_rate": ("Tie rate", "how often they say tie, relative to the crowd: 1 is usual"),
    "left_share": ("Left", "share of their votes for the left item"),
    "tie_share": ("Tied", "share of their votes that are ties"),
    # comparisons
    "left": ("Left", "the item on the left"),
    "right": ("Right", "the item on the right"),
    "chosen": ("Chosen", "what the annotator chose"),
    "p_serious": ("P serious", "probability that this comparison was serious"),
    "other": ("Other", "the item it was compared with"),
    "for_item": ("For item", "votes for the first item"),
    "for_other": ("For other", "votes for the other item"),
    "ties": ("Ties", "votes for neither"),
    "divided": ("Divided", "votes on the side with fewer votes"),
}  # fmt: skip
"""The headings and tips of the tables of comparisons, where they differ from those of labels."""

THRESHOLD_HEADINGS = {
    "sensitivity_": "how often they choose {} or more when the truth is {} or more",
    "specificity_": "how often they choose less than {} when the truth is less",
}
"""Tips on columns of one threshold of the scale, by the beginning of their names."""

ACCURACY_TIPS: dict[Readout, str] = {
    "right": HEADINGS["accuracy"][1],
    "opinion": "probability that a serious opinion on the same item is the label they gave",
}
"""What an annotator's accuracy is, which depends on what the items' probabilities are."""

READOUT_TIPS: dict[Readout, str] = {
    "right": "probability that the recovered label is the right one",
    "opinion": "share of opinion of the recovered label",
}
"""What confidence is, which depends on what the items' probabilities are."""
