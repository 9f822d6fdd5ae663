"""Tools of the Model Context Protocol: what agents may ask, read-only, with how far each answer is right."""
