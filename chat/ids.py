"""Identifiers of rows; migrations know them by this name."""

from retrieval.ids import uuid7 as uuid7
