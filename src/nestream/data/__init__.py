"""Data sets: deterministic generators and small bundled samples.

>>> import nestream.data
>>> sorted(nestream.data.GENERATORS)
['coldchain', 'hospital', 'retail', 'sase', 'stock']
"""

from nestream.data.bundle import sample, sample_names, sample_path
from nestream.data.coldchain import coldchain
from nestream.data.hospital import hospital
from nestream.data.registry import GENERATORS, Generator, generate
from nestream.data.retail import retail
from nestream.data.sase import sase
from nestream.data.sase_query import sase_query, sase_selectivity
from nestream.data.stock import stock

__all__ = [
    "GENERATORS",
    "Generator",
    "coldchain",
    "generate",
    "hospital",
    "retail",
    "sample",
    "sample_names",
    "sample_path",
    "sase",
    "sase_query",
    "sase_selectivity",
    "stock",
]
