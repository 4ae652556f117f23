"""One module for each kind of file, with `read(source, writer)`; only the child imports them."""
