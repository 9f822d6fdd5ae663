"""What is remembered, and what is forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from seamline.model.recent import Recent


def test_what_was_used_longest_ago_is_forgotten() -> None:
    """Reading is using."""
    known: Recent[str, int] = Recent(2)
    known["a"], known["b"] = 1, 2
    assert known.get("a") == 1
    known["c"] = 3
    assert [*known] == ["a", "c"] and known.get("b") is None
    assert known.pop("a") == 1 and known.pop("a") is None
    known.clear()
    assert len(known) == 0


def test_threads_may_share_it() -> None:
    """An entry that another thread drops meanwhile is no error."""
    known: Recent[int, int] = Recent(3)

    def use(seed: int) -> None:
        for at in range(5_000):
            known[(seed + at) % 7] = at
            known.get(at % 7)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(use, seed) for seed in range(4)]:
            done.result()
    assert len(known) == 3
