"""What the page shows beside the rows: computed here, drawn by the scripts in this folder."""
