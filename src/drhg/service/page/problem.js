// The problem at hand, from a file, the clipboard, a sample or clicks: what the service is sent, and
// what is drawn.
import { post } from "./api.js";
import { sample } from "./samples.js";

export const drawingOf = (instance) => ({
  name: instance.name,
  problem: instance.windows ? "vrptw" : instance.demand ? "cvrp" : "tsp",
  n: instance.xy.length,
  x: Float64Array.from(instance.xy, (point) => point[0]),
  y: Float64Array.from(instance.xy, (point) => point[1]),
  depot: instance.demand ? 0 : null,
  demand: instance.demand ?? null,
  capacity: instance.capacity ?? null,
  names: null,
  integral: false,
  returns: true,
  windows: instance.windows ?? null,
  methods: instance.windows ? ["auto"] : null,
});

// body: what requests hold; drawing: what plans are made of
export const fromSample = (number) => {
  const instance = sample(number);
  return { body: { instance }, drawing: drawingOf(instance) };
};

export async function fromText(text, name, capacity) {
  const body = { instance: text };
  if (name) body.name = name;
  if (capacity) body.table = { capacity };
  const drawing = await post("describe", body);
  for (const axis of ["x", "y"]) if (drawing[axis]) drawing[axis] = Float64Array.from(drawing[axis]);
  return { body, drawing };
}

// Clicked points: the first is the depot if there are vehicles.
export function fromPoints(points, capacity) {
  const instance = { format: "drhg-instance", name: "my stops", xy: points };
  if (capacity) Object.assign(instance, { demand: points.map((_, i) => (i ? 1 : 0)), capacity, depot: 0 });
  return { body: { instance }, drawing: { ...drawingOf(instance), draft: true }, points };
}
