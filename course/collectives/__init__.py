"""Collectives built from send and recv: ring, tree, naive. They come with lesson 03; data parallel uses torch's own."""
