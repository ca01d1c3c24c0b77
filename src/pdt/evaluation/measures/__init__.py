"""From stored lines to named numbers, each with its interval over documents."""
