"""Long proofs that `make prove` runs whole, and the staff tests in part."""
