"""Cases as text: a query, a history, and the matches, errors or plan that it gives."""
