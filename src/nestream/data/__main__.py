"""`python -m nestream.data` regenerates the bundled samples, byte for byte."""

from nestream.data.bundle import write_samples

if __name__ == "__main__":
    write_samples()
