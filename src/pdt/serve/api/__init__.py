"""The server's interfaces over HTTP, one file each."""
