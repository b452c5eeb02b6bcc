"""The tests, a package so that `python -m tests.vocabularies` and `from tests.oracle import ...` work everywhere."""
