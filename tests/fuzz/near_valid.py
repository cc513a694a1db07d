"""Files that are nearly sound, as hypothesis makes them: a sound one, and a few edits."""

from __future__ import annotations

from hypothesis import strategies as st

from .reader_targets import Target

EDITS = ("put", "overwrite", "delete", "repeat", "swap", "end")


def near_valid(target: Target) -> st.SearchStrategy[bytes]:
    """Inputs of a target: a sound one with up to six edits, or words of the format in a row."""
    words = st.sampled_from(target.words or (b"\x00",)) | st.binary(min_size=1, max_size=4)
    edit = st.tuples(st.sampled_from(EDITS), st.floats(0, 1), st.floats(0, 1), words)
    edited = st.builds(_edited, st.sampled_from(target.inputs()), st.lists(edit, max_size=6))
    made_up = st.builds(
        lambda first, rest: first + b"".join(rest),
        st.sampled_from([b"\x00", b"\x01", b"\x02"]),
        st.lists(words, max_size=30),
    )
    return edited | edited | made_up


def _edited(data: bytes, edits: list[tuple[str, float, float, bytes]]) -> bytes:
    """The first byte says what the content is, and stays."""
    which, content = data[:1], data[1:]
    for what, first, second, word in edits:
        low, high = sorted((int(first * len(content)), int(second * len(content))))
        near = min(high, low + 8)
        if what == "put":
            content = content[:low] + word + content[low:]
        elif what == "overwrite":
            content = content[:low] + word + content[low + len(word) :]
        elif what == "delete":
            content = content[:low] + content[near:]
        elif what == "repeat":
            content = content[:near] + content[low:near] + content[near:]
        elif what == "swap":
            content = content[:low] + content[high:] + content[low:high]
        else:
            content = content[:high]
    return which + content
