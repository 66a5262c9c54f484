"""Import and export of other libraries' weights, through maps between tensor names."""
