"""Local search on tours: candidate lists, k-opt moves, kicks."""
