"""What Claude can do, a module for each family of tools."""
