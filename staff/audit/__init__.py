"""The audit: every mistake and every alternate through the suite, and what that proves."""
