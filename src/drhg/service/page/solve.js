// One solve, watched: it runs on the service and its changes are drawn as they come.
import * as api from "./api.js";
import { Chart } from "./chart.js";
import { colours, count, element, routeColour, shown, time } from "./look.js";

const $ = (id) => document.getElementById(id);
const NOTES = {
  auto: "The strongest search for the kind and size of the problem.",
  local: "Destroy a region, repair it by local search, keep what is better.",
  neural: "The same loop, with a network as the repairer.",
  paper: "The paper to the letter: its network, its regions, strict improvement.",
};
const ENDS = {
  time: "time is up", iterations: "all iterations are done", target: "the target is reached",
  no_improve: "nothing better was found for a while", interrupted: "stopped", memory: "memory ran out",
};

// A route has the same name in both directions.
const ends = (a, z) => (a < z ? `${a},${z}` : `${z},${a}`);

// A solve on the service, with the plan that its events change. Races have three of these.
export class Run {
  constructor(plan, on) {
    Object.assign(this, { plan, on, trace: [], cost: null, state: "idle", id: null, updates: 0 });
  }

  get running() { return ["sending", "queued", "running"].includes(this.state); }

  async start(body) {
    this.state = "sending";
    this.asked = performance.now();
    const key = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
    const found = await api.post("solves", body, { "Idempotency-Key": key });
    if (this.over) { api.remove(`solves/${found.id}`).catch(() => {}); return; } // left meanwhile
    this.id = found.id;
    this.state = "queued";
    this.on.state?.(this);
    this.attach();
  }

  attach() {
    this.abort = new AbortController();
    api.follow(this.id, {
      signal: this.abort.signal,
      onEvent: (name, data) => this.take(name, data),
      onLost: (lost) => { this.lost = lost; this.on.state?.(this); },
    }).catch((error) => this.on.fail?.(error));
  }

  take(name, data) {
    if (name === "improvement") {
      this.plan.change(data.added, data.removed);
      this.state = "running";
      this.better(data.cost, data.seconds, data.iterations);
      this.first ??= performance.now() - this.asked;
      this.updates++;
      this.on.change?.(this, data.added);
    } else if (name === "snapshot") {
      this.state = data.state;
      this.trace = data.trace;
      if (data.best) {
        this.plan.take(data.best.routes ?? [data.best.tour]);
        [this.cost, this.iterations] = [data.best.cost, data.best.iterations];
      }
      this.on.change?.(this, []);
    } else if (name === "state") {
      this.state = data.state;
      if (data.state === "running") this.began = performance.now();
    } else if (name === "end") {
      Object.assign(this, { state: data.state, result: data.result, problem: data.problem });
      this.on.end?.(this);
    } else if (name === "gone") {
      this.state = "gone";
      this.on.end?.(this);
    }
    this.on.state?.(this);
  }

  better(cost, seconds, iterations) {
    [this.cost, this.iterations] = [cost, iterations];
    this.trace.push([seconds, cost]);
  }

  // Seconds of the search so far.
  get seconds() {
    if (this.result) return this.result.seconds;
    const last = this.trace.at(-1)?.[0] ?? 0;
    return this.began ? Math.max(last, (performance.now() - this.began) / 1000) : last;
  }

  stop() { return api.remove(`solves/${this.id}`); }

  leave() {
    this.over = true;
    this.abort?.abort();
    if (this.id && this.running) this.stop().catch(() => {});
  }
}

export class Solve {
  constructor(app, map) {
    Object.assign(this, { app, map, chart: new Chart($("chart")), run: null, plan: null });
    $("solve").onclick = () => this.start();
    $("stop").onclick = () => this.run?.stop().catch(app.fail);
    $("more").onclick = () => this.start(this.plan.solution());
    for (const radio of document.querySelectorAll("[name=method]")) radio.onchange = () => this.note();
    for (const button of document.querySelectorAll("[data-sort]")) button.onclick = () => this.sort(button);
    this.order = { by: "route", up: true };
    this.note();
    setInterval(() => { if (this.running) this.facts(); }, 250);
  }

  get running() { return Boolean(this.run?.running); }

  note() {
    const radios = [...document.querySelectorAll("[name=method]")];
    for (const radio of radios) radio.disabled = Boolean(this.plan && !this.plan.knows(radio.value));
    if (radios.find((radio) => radio.checked).disabled) radios[0].checked = true;
    $("method-note").textContent = NOTES[this.method] + (radios.some((radio) => radio.disabled) ? " The others do not know problems of this kind." : "");
  }

  get method() { return document.querySelector("[name=method]:checked").value; }

  open(plan) {
    this.run = null;
    this.plan = plan;
    this.map.show(plan);
    this.reset();
  }

  reset() {
    if (!this.app.problem) this.plan = this.run = null;
    $("cost").textContent = "–";
    $("gain").textContent = "";
    $("state").textContent = "";
    $("facts").replaceChildren();
    this.rows = [];
    if (this.app.view !== "race") this.chart.show([], 0);
    this.note();
    this.buttons();
    this.cards();
    this.describe();
  }

  async start(start = null) {
    const { app } = this;
    app.calm();
    if (!start) { this.plan.clear(); this.map.changed(); }
    this.run = new Run(this.plan, {
      change: (run, added) => this.changed(run, added),
      state: () => this.state(),
      end: () => this.end(),
      fail: app.fail,
    });
    if (start) this.plan.clear();
    const body = { ...app.problem.body, method: this.method, seconds: app.seconds() };
    if (start) body.start = start;
    this.asked = body.seconds;
    this.spoken = 0;
    this.rows = [];
    this.cards();
    this.buttons();
    $("state").textContent = "sending…";
    try {
      await this.run.start(body);
      if (this.run?.id) history.replaceState(null, "", `#solve=${this.run.id}`);
    } catch (error) {
      this.run = null;
      if (start) { this.plan.take(start.routes ?? [start.tour]); this.map.changed(); }
      $("state").textContent = "";
      app.fail(error);
    }
    this.buttons();
  }

  // Take up a solve that is named in the address.
  async resume(id) {
    try {
      const [state, drawing] = await Promise.all([api.get(`solves/${id}`), api.get(`solves/${id}/instance`)]);
      for (const axis of ["x", "y"]) if (drawing[axis]) drawing[axis] = Float64Array.from(drawing[axis]);
      const instance = await api.get(`solves/${id}/files/instance.json`);
      this.app.open({ body: { instance }, drawing });
      this.asked = state.seconds;
      this.run = new Run(this.plan, { change: (run, added) => this.changed(run, added), state: () => this.state(), end: () => this.end(), fail: this.app.fail });
      Object.assign(this.run, { id, state: state.state, asked: performance.now() });
      this.run.attach();
      history.replaceState(null, "", `#solve=${id}`);
    } catch (error) {
      this.app.clear();
      this.app.fail(error);
    }
  }

  leave() {
    this.run?.leave();
    this.run = null;
    history.replaceState(null, "", location.pathname);
  }

  changed(run, added) {
    if (run !== this.run) return;
    this.map.changed(added);
    this.late ??= requestAnimationFrame(() => {
      this.late = null;
      if (this.run) this.figures();
    });
  }

  figures() {
    const { run } = this;
    $("cost").textContent = shown(run.cost);
    $("cost").parentElement.classList.toggle("long", $("cost").textContent.length > 9);
    const first = run.trace[0]?.[1];
    const less = first ? (100 * (first - run.cost)) / first : 0;
    $("gain").textContent = less >= 0.05 ? `−${less.toFixed(1)} %` : "";
    this.facts();
    if (this.plan.routed && !this.app.quiet) this.table();
    this.describe();
    $("more").hidden = this.running || !this.plan.solved;
  }

  facts() {
    const { run } = this;
    if (!run) return;
    if (this.app.view === "solve") this.chart.show([{ name: "cost", colour: "curve-auto", points: run.trace, until: Math.min(run.seconds, this.asked ?? Infinity) }], this.asked);
    const rows = [["seconds", run.seconds.toFixed(1)], ["improvements", count(run.trace.length)]];
    if (run.iterations !== undefined) rows.push(["iterations", count(run.result?.iterations ?? run.iterations)]);
    if (this.plan.routed && this.plan.solved) rows.push(["routes", count(this.plan.routes().length)]);
    $("facts").replaceChildren(...rows.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }))));
  }

  state() {
    const { run } = this;
    if (!run) return;
    const words = {
      sending: "sending…", queued: "waiting for a free worker…", running: "searching…",
      gone: "The service was restarted and does not know this solve any more. The last solution received is shown.",
      interrupted: "Interrupted by a restart of the service: this is the best that was saved.",
      failed: run.problem?.detail ?? "failed",
      stopped: "Stopped. This is the best so far.",
      finished: run.result ? `Done: ${ENDS[run.result.status] ?? run.result.status}.` : "Done.",
    };
    const text = run.lost && run.running ? "Connection lost. Trying again…" : words[run.state] ?? "";
    const warned = run.result?.unplaced?.length ? ` ${run.result.unplaced.length} customers fit into no vehicle.` : "";
    if ($("state").textContent !== text + warned) $("state").textContent = text + warned;
    $("state").classList.toggle("warn", Boolean(warned) || run.lost || ["gone", "interrupted", "failed"].includes(run.state));
    this.buttons();
  }

  buttons() {
    $("solve").disabled = !this.app.problem || this.app.problem.drawing.n < 3;
    $("solve").hidden = this.running;
    $("stop").hidden = !this.running;
    $("stop").disabled = !this.run?.id;
    $("more").hidden = this.running || !this.plan?.solved;
  }

  end() {
    const { run } = this;
    if (run.state === "failed") this.app.fail({ title: run.problem?.title, detail: run.problem?.detail });
    this.figures();
    if (run.cost === null) $("cost").textContent = "–";
    this.cards();
    this.details().catch(this.app.fail);
  }

  // What changes do not tell: directions, which matter for time windows, open routes and one-way
  // roads; and lengths and times.
  async details() {
    const { run, plan } = this;
    if (!run.id || run.state === "gone") return;
    const { best } = await api.get(`solves/${run.id}`);
    if (!best || run !== this.run) return;
    plan.exact = best.routes ?? [best.tour];
    if (!plan.routed) return;
    const rows = await api.get(`solves/${run.id}/routes`);
    if (run !== this.run) return;
    this.told = new Map(rows.map((row) => [ends(...row.nodes), row]));
    if (rows.some((row) => row.arrivals)) plan.arrivals = new Map(rows.flatMap((row, i) => plan.exact[i].map((node, k) => [node, row.arrivals[k]])));
    this.table();
  }

  describe() {
    const { plan } = this;
    const what = !plan ? "An empty map" : plan.solved
      ? `${plan.name}: ${plan.routed ? `${plan.routes().length} routes` : "a tour"} through ${count(plan.n)} nodes, cost ${shown(this.run?.cost ?? null)}`
      : `${plan.name}: ${count(plan.n)} nodes without a solution`;
    if (performance.now() - (this.spoken ?? 0) < 3000 && this.running) return; // screen readers would never stop
    this.spoken = performance.now();
    this.map.canvas.setAttribute("aria-label", what);
  }

  // --- routes and files ---

  cards() {
    const here = this.app.view === "solve";
    $("routes-card").hidden = !(here && this.plan?.routed && this.plan.solved);
    const done = this.run && !this.running && this.run.id && this.run.state !== "gone" && this.plan?.solved;
    $("files-card").hidden = !(here && done);
    if (here && done && this.filesOf !== this.run.id) this.files();
    if (here && this.run) this.facts();
  }

  async files() {
    const { id } = this.run;
    this.filesOf = id;
    const kinds = { ".tour": "TSPLIB", ".sol": "CVRPLIB", ".json": "JSON", ".csv": "table", ".geojson": "lines", ".html": "map" };
    const { files } = await api.get(`solves/${id}`).catch(() => ({ files: {} }));
    const usable = Object.entries(files).filter(([suffix]) => kinds[suffix]);
    $("files").replaceChildren(...usable.map(([suffix, address]) => element("button", {
      onclick: () => api.save(address.slice(1), `solution${suffix}`).catch(this.app.fail),
    }, suffix, " ", element("small", { textContent: kinds[suffix] }))), element("button", { onclick: () => this.picture() }, ".png ", element("small", { textContent: "picture" })));
  }

  picture() {
    this.map.canvas.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: `${this.plan.name.replace(/\W+/g, "-")}.png` });
      link.click();
    });
  }

  table() {
    const { plan } = this;
    const paths = plan.routes();
    if (paths.length > 400 && this.running) return; // a long table can wait for the end
    const told = (path) => (this.running ? null : this.told?.get(ends(path[0], path.at(-1))));
    this.rows = paths.map((path, i) => ({
      colour: plan.colour[path[0]], route: told(path)?.route ?? i + 1, stops: path.length, load: plan.load(path),
      distance: told(path)?.distance ?? null, duration: told(path)?.duration ?? null,
    }));
    $("routes").classList.toggle("timed", this.rows.some((row) => row.duration !== null));
    $("routes-card").hidden = this.app.view !== "solve";
    this.fill();
  }

  sort(button) {
    const by = button.dataset.sort;
    this.order = { by, up: this.order.by === by ? !this.order.up : true };
    this.fill();
  }

  fill() {
    const { by, up } = this.order;
    const dark = colours().dark;
    for (const button of document.querySelectorAll("[data-sort]")) {
      const head = button.closest("th");
      if (button.dataset.sort === by) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const rows = [...this.rows].sort((a, b) => (up ? 1 : -1) * ((a[by] ?? 0) - (b[by] ?? 0)));
    $("routes").tBodies[0].replaceChildren(...rows.map((row) => {
      const dot = element("span", { className: "dot" });
      dot.style.background = routeColour(row.colour, dark);
      const { capacity } = this.plan;
      const share = capacity === null ? "" : element("meter", { min: 0, max: capacity, value: row.load, title: `${count(row.load)} of ${count(capacity)}` });
      const line = element("tr", { tabIndex: 0 },
        element("td", {}, dot, String(row.route)), element("td", { textContent: count(row.stops) }),
        element("td", {}, count(row.load), share), element("td", { textContent: row.distance === null ? "…" : shown(row.distance) }),
        element("td", { className: "time", textContent: row.duration === null ? "" : time(row.duration, this.plan.clock) }));
      line.classList.toggle("picked", row.colour === this.map.picked);
      line.onclick = () => this.stand(row.colour);
      line.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.stand(row.colour); } };
      return line;
    }));
  }

  // Have one route stand out, or none.
  stand(colour) {
    this.map.picked = this.map.picked === colour ? -1 : colour;
    this.map.refresh();
    this.fill();
  }

  pick(node) {
    if (!this.plan?.routed || !this.plan.solved) return;
    this.stand(node < 0 || node === this.plan.depot ? this.map.picked : this.plan.colour[node]);
  }
}


