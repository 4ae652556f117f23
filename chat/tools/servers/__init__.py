"""Tools of other programs, by the Model Context Protocol: named by the operator, picked chat by chat."""
