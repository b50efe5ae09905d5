"""Models with latent classes of items and a confusion matrix per annotator."""
