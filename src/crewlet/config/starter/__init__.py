"""The files of a small company to start from, as `crewlet init` writes them."""
