"""Database work from async code; it is done as in the floor below."""

from retrieval.db import database_threads as database_threads
from retrieval.db import in_db as in_db
