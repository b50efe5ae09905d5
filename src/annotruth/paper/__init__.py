"""The paper's experiments, one a file, behind `annotruth reproduce`."""
