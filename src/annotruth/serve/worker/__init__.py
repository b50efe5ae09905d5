"""The worker: fits the labels of every project while they come in, and publishes the results."""
