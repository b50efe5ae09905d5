"""Labels from labelling tools: webhooks that arrive, polling, and predictions that go back.

One file per platform reads its messages; `annotruth.serve.hooks.router` receives them, and
`annotruth.serve.hooks.poller` asks the platforms for what was lost.
"""
