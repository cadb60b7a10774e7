"""Stock trades: one event a trade, the ticker is the event type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nestream.data.columns import (
    check_events,
    numbers,
    random_numbers,
    skewed,
    small_integer,
    table,
    timestamps,
    words,
)

TICKERS = ("DELL", "MSFT", "ORCL", "INTC", "IPIX", "RIMM", "AMAT", "YHOO", "CSCO", "QQQ")
START = "2026-01-05T09:30:00"
COLUMNS = {
    "ts": "timestamp[ms]: time of the trade",
    "type": "text: the ticker",
    "id": "int64: the account that traded",
    "price": "float64: a random walk for each ticker",
    "amount": "int64: shares, a multiple of 10",
}
TYPES = dict.fromkeys(TICKERS, ("id", "price", "amount"))


def stock(
    events: int = 10_000,
    seed: int = 0,
    *,
    rate: float = 10.0,
    tickers: Sequence[str] = TICKERS,
    ticker_skew: float = 0.0,
    amounts: int = 100,
    amount_skew: float = 0.0,
    accounts: int = 100,
) -> pa.Table:
    """Generate trades at `rate` events per second.

    `ticker_skew`, `amount_skew`: Zipf parameters, 0 is uniform. `amounts`: how many different amounts.
    `accounts`: how many different ids. Above 500 events a second some trades share a millisecond.

    >>> stock(3, seed=1).column_names
    ['ts', 'type', 'id', 'price', 'amount']
    """
    check_events(events)
    if rate <= 0:
        raise ValueError(f"rate must be positive, got {rate}")
    if not tickers:
        raise ValueError("tickers must not be empty")
    random = random_numbers(seed)
    mean_step = max(1, round(1_000_000 / rate))
    clock = np.cumsum(random.integers(1, 2 * mean_step, events, dtype=np.int64)) // 1_000
    ticker = skewed(random, len(tickers), ticker_skew, events, small_integer(len(tickers)))
    account = random.integers(1, accounts + 1, events, dtype=np.int64)
    amount = 10 * (1 + skewed(random, amounts, amount_skew, events, np.int64))
    cents = _walks(random, ticker, len(tickers))
    return table(
        {
            "ts": timestamps(START, clock),
            "type": words(ticker, tickers),
            "id": numbers(account),
            "price": numbers(cents / 100),
            "amount": numbers(amount),
        }
    )


def _walks(
    random: np.random.Generator, ticker: np.ndarray[tuple[int, ...], np.dtype[np.generic]], tickers: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """One random walk in cents for each ticker, reflected so that no price falls below 1.00."""
    opening = random.integers(1_500, 9_000, tickers)
    moves = random.integers(-5, 6, len(ticker), dtype=np.int64)
    order = np.argsort(ticker, kind="stable")
    total = np.cumsum(moves[order])
    owner = ticker[order].astype(np.int64)
    first = np.searchsorted(owner, np.arange(tickers))
    before = np.concatenate((np.zeros(1, np.int64), total))[first]
    walk = np.empty(len(ticker), np.int64)
    walk[order] = opening[owner] + total - before[owner]
    return 100 + np.abs(walk - 100)
