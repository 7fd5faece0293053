"""The map, the calendar and the tags of the documents."""
