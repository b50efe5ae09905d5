"""Machines among annotators: dependence, copies, and the language models of llmfao."""
