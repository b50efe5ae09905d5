"""PairGPM: pair comparisons by annotators who are not always serious."""
