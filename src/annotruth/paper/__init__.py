"""The paper's experiments and claims, run by `annotruth reproduce`."""
