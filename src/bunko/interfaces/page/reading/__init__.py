"""Render documents as people read them: their own structure as markup that can do nothing."""
