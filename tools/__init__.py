"""Programs that make files of the repository again; none is part of the package."""
