"""Which document ids have been seen, in 24 to 48 bytes an id (a Python set takes 120).

An open hash table of the ids' 16 bytes, probed linearly; ids are hashes, so their own first bytes
say where to begin. It doubles when two thirds full.
"""

WIDTH = 16
EMPTY = bytes(WIDTH)  # no id is this: it would take 2**128 documents


class SeenIds:
    """A set of ids that only grows."""

    def __init__(self) -> None:
        self._slots = 1 << 10
        self._table = bytearray(self._slots * WIDTH)
        self._count = 0

    def add(self, document_id: str) -> bool:
        """Note a document's id (32 hex digits); False if it had been noted before."""
        key = bytes.fromhex(document_id)
        place = self._find(key)
        if self._table[place : place + WIDTH] == key:
            return False
        self._table[place : place + WIDTH] = key
        self._count += 1
        if 3 * self._count > 2 * self._slots:
            self._grow()
        return True

    def _find(self, key: bytes) -> int:
        """Offset of the key, or of the empty slot where it belongs."""
        slot = int.from_bytes(key[:8], "little") % self._slots
        while True:
            place = slot * WIDTH
            found = self._table[place : place + WIDTH]
            if found in (key, EMPTY):
                return place
            slot = (slot + 1) % self._slots

    def _grow(self) -> None:
        old = self._table
        self._slots *= 2
        self._table = bytearray(self._slots * WIDTH)
        for start in range(0, len(old), WIDTH):
            key = bytes(old[start : start + WIDTH])
            if key != EMPTY:
                place = self._find(key)
                self._table[place : place + WIDTH] = key
