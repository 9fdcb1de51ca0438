"""Models that answer from a script, over real HTTP on 127.0.0.1, in the shapes of the providers' APIs."""
