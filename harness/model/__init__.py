"""The vocabulary of the project as types, and the published facts that it relies on; imports no other room."""
