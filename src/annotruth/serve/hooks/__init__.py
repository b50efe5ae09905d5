"""Labels from labelling tools: webhooks that arrive, polling, and predictions that go back."""
