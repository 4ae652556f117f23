"""What Django's own formats of Arabic lack."""

DATETIME_FORMAT = "j F Y، H:i"
NUMBER_GROUPING = 3
