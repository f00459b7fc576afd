"""The known failures of cases/known: what they say, what the build makes of them, and what records show of them."""
