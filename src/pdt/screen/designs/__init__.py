"""The designs that come with the package, one a preset."""
