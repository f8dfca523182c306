// An instance with its present solution: edges come and go, routes follow from them.

export class Plan {
  constructor(drawing) {
    Object.assign(this, drawing); // what `describe` answers
    this.routed = drawing.depot !== null;
    this.next = new Int32Array(2 * this.n).fill(-1); // both neighbours of every node but the depot
    this.colour = new Int32Array(this.n).fill(-1); // of the route that a node was on last
    this.paths = [];
    this.stale = true;
    this.edges = 0;
    this.exact = null; // the routes in their directions, once they are known
    this.arrivals = null; // by node, likewise
  }

  get solved() { return this.edges > 0; }

  clear() {
    this.next.fill(-1);
    this.edges = 0;
    this.stale = true;
  }

  change(added, removed) {
    for (const [a, b] of removed) { this.drop(a, b); this.drop(b, a); }
    for (const [a, b] of added) { this.put(a, b); this.put(b, a); }
    this.edges += added.length - removed.length;
    this.exact = this.arrivals = null;
    this.stale = true;
  }

  put(a, b) {
    if (a === this.depot) return;
    this.next[2 * a + (this.next[2 * a] < 0 ? 0 : 1)] = b;
  }

  drop(a, b) {
    if (a === this.depot) return;
    this.next[2 * a + (this.next[2 * a] === b ? 0 : 1)] = -1;
  }

  // Take a whole solution: lists of nodes, without the depot.
  take(routes) {
    this.clear();
    for (const route of routes) {
      const stops = this.routed ? [this.depot, ...route] : route;
      const added = stops.map((node, i) => [node, stops[(i + 1) % stops.length]]);
      if (!this.returns) added.pop();
      if (stops.length > 1) this.change(added, []);
    }
    this.exact = routes;
  }

  // The routes as lists of nodes, the depot left out; a tour is the only one.
  routes() {
    if (!this.stale) return this.paths;
    const { n, next, depot } = this;
    const seen = new Uint8Array(n);
    const paths = [];
    const walk = (start, before) => {
      const path = [];
      let here = start;
      while (here >= 0 && here !== depot && !seen[here]) {
        seen[here] = 1;
        path.push(here);
        const [p, q] = [next[2 * here], next[2 * here + 1]];
        [before, here] = [here, p === before ? q : p];
      }
      paths.push(path);
    };
    if (this.routed) {
      for (let i = 0; i < n; i++) {
        if (!seen[i] && i !== depot && (next[2 * i] === depot || next[2 * i + 1] === depot)) walk(i, depot);
      }
      this.keepColours(paths);
    } else if (this.edges) {
      const end = this.returns ? -1 : next.findIndex((node) => node < 0) >> 1; // of a path
      if (end >= 0) walk(end, -1);
      else walk(0, next[0]);
    }
    this.paths = paths;
    this.stale = false;
    return paths;
  }

  // Each route keeps the colour that most of its stops had, so that the picture does not flicker.
  keepColours(paths) {
    const wishes = [];
    paths.forEach((path, i) => {
      const counts = new Map();
      for (const node of path) counts.set(this.colour[node], (counts.get(this.colour[node]) ?? 0) + 1);
      for (const [colour, count] of counts) if (colour >= 0) wishes.push([count, i, colour]);
    });
    wishes.sort((a, b) => b[0] - a[0]);
    const own = new Int32Array(paths.length).fill(-1);
    const taken = new Set();
    for (const [, i, colour] of wishes) {
      if (own[i] < 0 && !taken.has(colour)) { own[i] = colour; taken.add(colour); }
    }
    let free = 0;
    paths.forEach((path, i) => {
      if (own[i] < 0) {
        while (taken.has(free)) free++;
        own[i] = free;
        taken.add(free);
      }
      for (const node of path) this.colour[node] = own[i];
    });
  }

  load(path) {
    return this.demand ? path.reduce((sum, node) => sum + this.demand[node], 0) : 0;
  }

  knows(method) { return !this.methods || this.methods.includes(method); }

  called(node) { return this.names ? this.names[node] : `stop ${node}`; }

  solution() {
    const routes = this.exact ?? this.routes();
    return this.routed ? { routes } : { tour: routes[0] };
  }
}
