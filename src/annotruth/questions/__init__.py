"""Several questions of one file: each is fitted, and what is known of annotators is shared."""
