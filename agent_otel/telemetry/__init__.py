"""What goes out: spans, metrics on two sinks, the providers behind them. Knows no framework."""
