"""What models say about people, against what is known of them."""
