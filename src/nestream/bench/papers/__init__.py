"""The papers whose experiments are rebuilt: a file for each says what it reports and what is assumed here."""
