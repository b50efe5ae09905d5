"""Pages of `annotruth serve`: made on the server by templates, with little script, and live."""
