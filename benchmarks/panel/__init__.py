"""How well models find truth and spammers where labels are few or annotators misbehave."""
