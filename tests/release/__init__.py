"""What is released: the wheel, the sdist, and the files that name the version."""
