// Problems to begin with, the same for the same seed.

function random(seed) {
  let state = seed >>> 0;
  return () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function uniform(n, size, next) {
  return Array.from({ length: n }, () => [Math.round(next() * size), Math.round(next() * size)]);
}

// Towns of different sizes, and farms between them.
function towns(n, size, next) {
  const bell = () => (next() + next() + next() + next() - 2) / 2;
  const centres = Array.from({ length: Math.max(4, Math.round(Math.sqrt(n) / 3)) }, () => [next(), next(), 0.03 + 0.09 * next()]);
  return Array.from({ length: n }, () => {
    if (next() < 0.2) return [Math.round(next() * size), Math.round(next() * size)];
    const [cx, cy, wide] = centres[Math.floor(next() * centres.length)];
    const kept = (value) => Math.round(size * Math.min(1, Math.max(0, value)));
    return [kept(cx + bell() * wide), kept(cy + bell() * wide)];
  });
}

export const SAMPLES = [
  { title: "200 stops", make: (next) => ({ name: "200 stops", xy: uniform(200, 1000, next) }) },
  { title: "1,000 stops", make: (next) => ({ name: "1,000 stops", xy: uniform(1000, 10000, next) }) },
  { title: "Towns", note: "2,000", make: (next) => ({ name: "towns", xy: towns(2000, 10000, next) }) },
  { title: "60 deliveries", make: (next) => deliveries(60, next, 40) },
  { title: "300 deliveries", make: (next) => deliveries(300, next, 110) },
  { title: "100 deliveries", note: "with time windows", make: (next) => punctual(100, next) },
  { title: "20,000 stops", make: (next) => ({ name: "20,000 stops", xy: uniform(20000, 100000, next) }) },
  { title: "100,000 stops", make: (next) => ({ name: "100,000 stops", xy: towns(100000, 1000000, next) }) },
];

function deliveries(n, next, capacity) {
  const xy = [[500, 500], ...towns(n, 1000, next)];
  const demand = [0, ...Array.from({ length: n }, () => 1 + Math.floor(next() * 9))];
  return { name: `${n} deliveries`, xy, demand, capacity, depot: 0 };
}

// A day of 2,800 units of time; half of the customers say when they are there.
function punctual(n, next) {
  const found = { ...deliveries(n, next, 120), name: `${n} deliveries in time`, service_time: [0, ...Array(n).fill(10)] };
  const windows = found.xy.map(([x, y], i) => {
    const far = Math.ceil(Math.hypot(x - 500, y - 500));
    if (i === 0 || next() < 0.5) return [0, i ? 2800 - far - 10 : 2800];
    const early = Math.round(far + next() * (2600 - 2 * far));
    return [early, Math.min(2800 - far - 10, early + 300)];
  });
  return { ...found, windows };
}

export const sample = (number, seed = 1) => ({ format: "drhg-instance", ...SAMPLES[number].make(random(seed * 1000 + number)) });
