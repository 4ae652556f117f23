"""Files of other systems, each read into portable chats."""
