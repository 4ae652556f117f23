"""Identifiers of rows; migrations know them by this name."""

from retrieval.ids import lowest_uuid7 as lowest_uuid7
from retrieval.ids import uuid7 as uuid7
