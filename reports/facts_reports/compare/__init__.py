"""Two builds, side by side: what changed, in which class, and the words for it."""
