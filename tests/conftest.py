"""What holds for all tests."""

import gc


def pytest_collection_finish(session):
    """Leave the thousands of collected tests out of every garbage collection."""
    gc.collect()
    gc.freeze()
