"""Reads FACTS records and shows them. Never judges: every verdict is the record's own."""
