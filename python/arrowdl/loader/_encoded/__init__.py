"""Columns of encoded files: reading and decoding them in threads, joining what comes out."""
