"""Code that runs at interpreter start: standard library only."""
