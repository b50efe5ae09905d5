"""The web server of `annotruth serve`: the JSON API, who may use it, and ingestion of labels.

`annotruth.serve.web.app.make_app` makes the application; `python -m annotruth.serve.web.app` runs it.
"""
