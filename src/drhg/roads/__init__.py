"""Distances and travel times by road, from a routing server that the user runs or names."""

from drhg.roads.matrix import RoadMatrix, RoadParams, road_matrix
from drhg.roads.servers import Osrm, Server, Valhalla

__all__ = ["Osrm", "RoadMatrix", "RoadParams", "Server", "Valhalla", "road_matrix"]
