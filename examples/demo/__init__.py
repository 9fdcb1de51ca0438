"""The demo: an agent answers from a fragment, and its state dies at its cap; then the same with one variable more."""
