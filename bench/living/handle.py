"""Tells whether threads may add to and delete from one of our handles while others search it."""

import re


def one_handle(header):
    """Reads the contract of sl_index in the text of include/shortlist.h: calls "need the handle to themselves" as long
    as that sentence names add or delete."""
    contract = re.search(r"/\*((?:(?!\*/).)*)\*/\s*typedef struct sl_index sl_index;", header, re.DOTALL)
    if contract is None:
        return False
    alone = re.findall(r"([^.]*)\bto\s+(?:themselves|itself)\b", contract[1])
    return not any(re.search(r"\b(add|delete|change)", sentence) for sentence in alone)
