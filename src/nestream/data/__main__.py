"""`python -m nestream.data` writes the bundled samples again, the same to the byte."""

from nestream.data.bundle import write_samples

if __name__ == "__main__":
    write_samples()
