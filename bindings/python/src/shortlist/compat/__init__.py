"""The classes of other libraries over Shortlist: code that uses them runs with one import changed."""
