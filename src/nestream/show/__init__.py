"""What a query and its matches look like: timelines and graphs of plans, as data and as drawings."""
