"""Plans that live on: why a plan is as it is, and what a change of the problem does to it."""
