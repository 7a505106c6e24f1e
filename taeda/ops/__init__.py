"""Every op, one stanza each, a file per family. Imports nothing above itself."""
