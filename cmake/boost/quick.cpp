// Carries the precompiled header of the tests and the program.
