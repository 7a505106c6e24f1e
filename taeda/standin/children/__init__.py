"""A folder to search for modules in processes that a program under the stand-in starts: its ``torch`` is taeda."""
