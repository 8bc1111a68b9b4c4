"""What leaves the house: the stubs, the student release, the bundles of platforms."""
