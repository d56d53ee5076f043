"""What generating text keeps in memory: the bytes of the key-value cache. Plain arithmetic, standard library only."""

from __future__ import annotations

from course.errors import UsageError


def kv_cache_bytes(
    *, layers: int, kv_heads: int, head_width: int, tokens: int, batch: int = 1, dtype_bytes: int = 2, tp: int = 1
) -> int:
    """Bytes that one rank keeps, so that keys and values of earlier tokens are not computed again.

    One key and one value of `head_width` numbers for each layer, key-value head, token and sequence of the batch. With
    grouped queries there are fewer key-value heads than query heads (Ainslie et al. 2023). The `tp` tensor parallel
    ranks share the heads evenly. Raises UsageError where they cannot, and for counts below 1 (tokens: below 0).
    """
    counts = {
        "layers": layers, "kv_heads": kv_heads, "head_width": head_width, "batch": batch, "dtype_bytes": dtype_bytes,
        "tp": tp,
    }  # fmt: skip
    for name, count in counts.items():
        if count < 1:
            raise UsageError(f"kv_cache_bytes({name}={count}): {name} must be at least 1")
    if tokens < 0:
        raise UsageError(f"kv_cache_bytes(tokens={tokens}): a cache holds 0 tokens or more")
    if kv_heads % tp:
        near = ", ".join(str(k) for k in range(1, kv_heads + 1) if kv_heads % k == 0)
        raise UsageError(f"kv_cache_bytes(kv_heads={kv_heads}, tp={tp}): tp must divide kv_heads: try one of {near}")
    return 2 * layers * (kv_heads // tp) * head_width * tokens * batch * dtype_bytes
