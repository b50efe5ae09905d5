"""Several questions: whether sharing annotators' reliability helps, and whether it is switched off."""
