"""The version and the address of the pages, where tools can read them without other imports."""

__version__ = "0.1.0"
DOCUMENTATION = ""  # empty until the pages have an address, see RELEASING.md
