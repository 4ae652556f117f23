"""Chats out of Vitrine and into it: export, and import of our own and of other systems' files."""
