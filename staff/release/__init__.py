"""What students and instructors get: the stubs and the example submissions."""
