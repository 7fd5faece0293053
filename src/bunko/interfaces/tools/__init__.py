"""Tools that an assistant can call, independent of any protocol."""
