"""Tells whether threads may add to and delete from one of our handles while others search it."""

import re


def one_handle(header):
    """Reads the contract of sl_index in the text of include/shortlist.h. Threads may not as long as a sentence that names
    add, delete or changes says that they need the handle to themselves, or alone."""
    contract = re.search(r"/\*((?:(?!\*/).)*)\*/\s*typedef struct sl_index sl_index;", header, re.DOTALL)
    if contract is None:
        return False
    alone = re.findall(r"([^.]*)\b(?:to\s+(?:themselves|itself)|alone)\b", contract[1])
    return not any(re.search(r"\b(add|delete|change)", sentence) for sentence in alone)
