"""Labels from labelling tools: webhooks that arrive, polling, and predictions that go back.

One file per platform reads its messages and its API; `annotruth.serve.hooks.router` receives messages,
and `annotruth.serve.hooks.polling` asks the platforms for what was lost.
"""
