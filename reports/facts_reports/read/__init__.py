"""Records, read: rows and what their words, versions and predicates mean."""
