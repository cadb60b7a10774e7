"""The console: what it reads of a job, whom it lets in, and its pages in a browser on a running pipeline."""
