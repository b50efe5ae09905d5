"""Golden outputs: what about 150 calls print and write, to be compared between two versions."""
