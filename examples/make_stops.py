"""Make examples/stops.csv: 60 made-up customers around Freiburg, and the depot that serves them.

    python examples/make_stops.py > examples/stops.csv

Streets, shops and coordinates are invented; the same seed always gives the same file.
"""

import csv
import random
import sys

SHOPS = ("Bakery", "Pharmacy", "Florist", "Bookshop", "School", "Hotel", "Clinic", "Café", "Garage")
STREETS = (
    "Amselweg", "Bergstraße", "Birkenallee", "Brunnengasse", "Eschenweg", "Feldstraße",
    "Gartenstraße", "Hofgasse", "Kirchplatz", "Lindenstraße", "Mühlweg", "Rebstraße",
    "Schulstraße", "Sonnenhalde", "Talstraße", "Waldweg", "Wiesenweg", "Zollgasse",
)  # fmt: skip
TOWNS = (  # name, latitude, longitude, share of the customers
    ("Freiburg", 47.995, 7.850, 9), ("Gundelfingen", 48.042, 7.866, 3),
    ("Kirchzarten", 47.965, 7.955, 3), ("Bad Krozingen", 47.919, 7.700, 3),
    ("Breisach", 48.033, 7.583, 3), ("Emmendingen", 48.121, 7.849, 4),
    ("Staufen", 47.882, 7.732, 2), ("Waldkirch", 48.095, 7.961, 3),
)  # fmt: skip


def main() -> None:
    draw = random.Random(60)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(("name", "lat", "lon", "demand"))
    rows.writerow(("Depot, Haid industrial estate", "47.9871", "7.7935", ""))
    known: set[str] = set()
    while len(known) < 60:
        town, latitude, longitude, _ = draw.choices(TOWNS, [town[3] for town in TOWNS])[0]
        name = f"{draw.choice(SHOPS)}, {draw.choice(STREETS)} {draw.randint(1, 60)}, {town}"
        spot = (draw.gauss(latitude, 0.012), draw.gauss(longitude, 0.018))
        demand = draw.choice((2, 3, 4, 5, 6, 8, 10, 12, 15))
        if name not in known:
            known.add(name)
            rows.writerow((name, f"{spot[0]:.5f}", f"{spot[1]:.5f}", demand))


if __name__ == "__main__":
    main()
