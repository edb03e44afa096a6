"""The pool of an open Muster: its tasks, its slots, and who drives them."""
