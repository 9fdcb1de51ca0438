"""The scenarios that the remedies were made for, each before and after one variable."""
