// One step of destroy and repair, slowed down to five stages.
import * as api from "./api.js";
import { colours, count, element, shown } from "./look.js";
import { Plan } from "./plan.js";

const $ = (id) => document.getElementById(id);
const STAGES = ["Current", "Destroy", "Reduce", "Repair", "Judge"];
const MOST = 5000; // nodes: each step sends the whole instance
const REACH = 260; // nodes from which on the camera goes to the region
const ease = (t) => 1 - (1 - Math.min(1, Math.max(0, t))) ** 3;

export class Steps {
  constructor(app, map, solve) {
    Object.assign(this, { app, map, solve, film: null, stage: 0, tried: 0, kept: 0, seed: 1 });
    map.top = 96; // the caption's
    map.overlay = (pen, view, now) => this.paint(pen, view, now);
    map.onKey = (event) => this.key(event);
    $("step").onclick = () => this.next().catch(app.fail);
    $("play").onclick = () => this.play(!this.playing);
    $("restart").onclick = () => this.open(true);
    $("film-stages").replaceChildren(...STAGES.map((name, i) => element("li", {}, element("button", { textContent: name, disabled: true, onclick: () => { this.play(false); this.turn(i); } }))));
    for (const id of ["k", "speed"]) $(id).oninput = () => { $(`${id}-shown`).textContent = $(id).value; };
  }

  get pace() { return Number($("speed").value) / 2; }

  // Begin with the solution at hand, or with a first one.
  open(afresh = false) {
    this.play(false);
    const { problem } = this.app;
    this.film = null;
    [this.tried, this.kept, this.stage] = [0, 0, 0];
    this.now = problem && !afresh && this.solve.plan?.solved ? [this.solve.plan.solution()].map(({ routes, tour }) => routes ?? [tour])[0] : null;
    this.begun = this.now ? this.solve.run?.cost ?? null : null;
    this.old = Boolean(this.now);
    this.plan = problem ? new Plan(problem.drawing) : null;
    if (this.plan && this.now) this.plan.take(this.now);
    this.map.shows = true;
    this.map.fades = 1;
    if (this.plan?.x) this.map.show(this.plan);
    else { this.map.plan = null; this.map.refresh(); }
    const usable = Boolean(this.plan?.x) && this.plan.knows("local") && this.plan.n >= 5 && this.plan.n <= MOST;
    for (const id of ["step", "play", "restart"]) $(id).disabled = !usable;
    if (this.plan) $("k").max = String(Math.max(4, Math.min(60, Math.floor(this.plan.n / 3))));
    $("k-shown").textContent = $("k").value;
    this.marks();
    this.say(!this.plan ? "Open a problem first: a file, a sample or a few clicks."
      : !this.plan.x ? "Without coordinates there is nothing to draw."
      : !this.plan.knows("local") ? "These steps are for plain tours and routes, without time windows or open ends."
        : this.plan.n > MOST ? `Steps are shown for up to ${count(MOST)} nodes; this has ${count(this.plan.n)}.`
          : "Press “Next step” and watch one.");
    this.facts();
  }

  seen(is) {
    if (!is) { this.play(false); return; }
    // what the search has found meanwhile is where steps go on from
    if (!this.plan || (!this.tried && this.solve.plan?.solved)) this.open();
    this.map.resize();
  }

  say(text) { if ($("film-caption").textContent !== text) $("film-caption").textContent = text; }

  facts() {
    const cost = this.film ? (this.film.accepted && this.stage === 4 ? this.film.after.cost : this.film.before.cost) : this.begun;
    const rows = [["cost", shown(cost)], ["steps", count(this.tried)], ["accepted", count(this.kept)]];
    $("step-facts").replaceChildren(...rows.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value }))));
  }

  marks() {
    [...$("film-stages").querySelectorAll("button")].forEach((button, i) => {
      button.disabled = !this.film;
      if (this.film && i === this.stage) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    $("film-verdict").hidden = !(this.film && this.stage === 4);
  }

  play(on) {
    this.playing = on;
    $("play").textContent = on ? "Pause" : "Play";
    $("play").setAttribute("aria-pressed", String(on));
    if (on) this.next().catch((error) => { this.play(false); this.app.fail(error); });
  }

  async next() {
    if (this.asking || !this.plan) return;
    this.app.calm();
    clearTimeout(this.timer);
    this.asking = true;
    $("step").disabled = true;
    try {
      const { body } = this.app.problem;
      const asked = { ...body, repair: document.querySelector("[name=repair]:checked").value, k: Number($("k").value), candidates: 3, seed: this.seed++ };
      if (this.now) asked.solution = this.plan.routed ? { routes: this.now } : { tour: this.now[0] };
      const problem = this.app.problem;
      const film = await api.post("steps", asked);
      if (problem !== this.app.problem) return;
      this.film = film;
      this.tried++;
      if (film.accepted) this.kept++;
      this.now = film.accepted ? film.after.routes : film.before.routes;
      this.plan.take(film.before.routes);
      const near = [...film.destroyed, ...film.isolated, ...film.cut.flat()];
      if (this.plan.n > REACH) this.map.flyTo(this.map.cameraFor(near, Math.min(this.map.wide, this.map.high) / 5), 900);
      else if (this.tried === 1) this.map.fit();
      this.turn(0, true);
    } finally {
      this.asking = false;
      $("step").disabled = false;
    }
  }

  turn(stage, going = false) {
    const { film } = this;
    if (!film) return;
    clearTimeout(this.timer);
    this.stage = stage;
    this.at = performance.now();
    const hyper = film.pieces.length;
    const change = shown(Math.abs(film.change));
    this.say([
      `The current ${this.plan.routed ? "plan" : "tour"} costs ${shown(film.before.cost)}.`,
      `Destroy: ${film.destroyed.length} nodes at one place; ${film.cut.length} edges are cut.`,
      `Reduce: ${hyper} unbroken stretch${hyper === 1 ? "" : "es"} become hyper-edges. ${film.reduced_nodes} of ${count(this.plan.n)} nodes are left to decide on.`,
      `Repair: ${film.repair.length} edges reconnect the pieces.`,
      film.accepted ? `Better by ${change}: accepted.` : film.added.length ? `Not better (${film.change > 1e-9 ? `worse by ${change}` : "as good"}): rejected, the old one stays.` : "The repair chose the same edges again: nothing changes.",
    ][stage]);
    const verdict = $("film-verdict");
    verdict.textContent = film.accepted ? `−${change}  accepted` : film.change > 1e-9 ? `+${change}  rejected` : "±0  rejected";
    verdict.className = `verdict ${film.accepted ? "yes" : "no"}`;
    if (stage === 4 && film.accepted) this.plan.take(film.after.routes);
    else this.plan.take(film.before.routes);
    this.map.shows = stage === 0 || stage === 4;
    this.map.fades = 1;
    this.map.refresh();
    this.marks();
    this.facts();
    if (going && stage < 4) this.timer = setTimeout(() => this.turn(stage + 1, true), [700, 1500, 1900, 1900][stage] / this.pace);
    else if (going && this.playing) this.timer = setTimeout(() => this.next().catch(this.app.fail), 1400 / this.pace);
  }

  key(event) {
    if (event.key === " " && this.film) { this.play(!this.playing); return true; }
    if (event.key === "n") { this.next().catch(this.app.fail); return true; }
    const move = { "[": -1, "]": 1 }[event.key];
    if (move && this.film) { this.play(false); this.turn(Math.min(4, Math.max(0, this.stage + move))); return true; }
    return false;
  }

  // --- drawing ---

  paint(pen, view, now) {
    const { film, stage } = this;
    if (!film || this.plan !== view.plan) return false;
    const look = colours();
    const t = ((now - this.at) / 900) * this.pace;
    const width = view.lineWidth() + 0.6;
    const dot = Math.max(2.6, view.dotSize());
    if (stage === 1) {
      this.kept_edges(pen, view, look, 1);
      this.lines(pen, view, film.cut, look.gone, width, { dash: [5, 5], alpha: 1 - 0.25 * ease(t) });
      this.dots(pen, view, film.destroyed, look.gone, dot * (1 + 0.7 * ease(t * 1.6)));
    } else if (stage === 2 || stage === 3) {
      this.kept_edges(pen, view, look, stage === 2 ? 1 - 0.8 * ease(t) : 0.2);
      this.pieces(pen, view, look, width, stage === 2 ? ease(t) : 1);
      if (stage === 3) {
        const upto = film.repair.length * Math.min(1, t / 1.25);
        this.lines(pen, view, film.repair, look.new, width + 1.2, { upto });
      }
      this.ends(pen, view, look, dot);
      this.dots(pen, view, film.isolated, look.gone, dot * 1.5);
    } else if (stage === 4 && film.accepted) {
      this.lines(pen, view, film.removed, look.gone, width, { dash: [4, 6], alpha: 0.6 * (1 - ease(t / 2)) });
      this.lines(pen, view, film.added, look.new, width + 1.4, { alpha: 1 - 0.4 * ease(t / 2) });
    } else if (stage === 4) {
      this.lines(pen, view, film.added, look.gone, width + 0.6, { dash: [5, 5], alpha: 0.8 * (1 - ease(t / 2)) });
    }
    return t < 2.5;
  }

  lines(pen, view, edges, colour, width, { dash = [], alpha = 1, upto = edges.length } = {}) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineCap = dash.length ? "butt" : "round";
    pen.globalAlpha = alpha;
    pen.setLineDash(dash);
    pen.beginPath();
    edges.slice(0, Math.ceil(upto)).forEach(([a, b], i) => {
      const [ax, ay] = view.screen(a);
      const [bx, by] = view.screen(b);
      const share = Math.min(1, upto - i);
      pen.moveTo(ax, ay);
      pen.lineTo(ax + (bx - ax) * share, ay + (by - ay) * share);
    });
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  dots(pen, view, nodes, colour, r) {
    pen.fillStyle = colour;
    pen.beginPath();
    for (const node of nodes) {
      const [px, py] = view.screen(node);
      pen.moveTo(px + r, py);
      pen.arc(px, py, r, 0, 7);
    }
    pen.fill();
  }

  ends(pen, view, look, r) {
    pen.fillStyle = look.hyper;
    for (const piece of this.film.pieces) {
      for (const node of [piece[0], piece.at(-1)]) {
        const [px, py] = view.screen(node);
        pen.fillRect(px - r, py - r, 2 * r, 2 * r);
      }
    }
  }

  // What no cut has touched.
  kept_edges(pen, view, look, alpha) {
    pen.strokeStyle = look.tour;
    pen.lineWidth = view.lineWidth();
    pen.lineJoin = "round";
    pen.globalAlpha = alpha;
    pen.beginPath();
    for (const piece of this.film.pieces) {
      piece.forEach((node, i) => (i ? pen.lineTo(...view.screen(node)) : pen.moveTo(...view.screen(node))));
    }
    pen.stroke();
    if (this.plan.routed) this.untouched(pen, view);
    pen.globalAlpha = 1;
  }

  // Routes that lie wholly outside of the region are not among the pieces.
  untouched(pen, view) {
    const inside = new Set([...this.film.pieces.flat(), ...this.film.isolated]);
    pen.beginPath();
    for (const route of this.film.before.routes) {
      if (inside.has(route[0]) || inside.has(route.at(-1))) continue;
      route.forEach((node, i) => (i ? pen.lineTo(...view.screen(node)) : pen.moveTo(...view.screen(node))));
    }
    pen.stroke();
  }

  // Hyper-edges as arcs that bend to the side on which their nodes lie.
  pieces(pen, view, look, width, grown) {
    pen.strokeStyle = look.hyper;
    pen.lineCap = "round";
    for (const piece of this.film.pieces) {
      const [ax, ay] = view.screen(piece[0]);
      const [bx, by] = view.screen(piece.at(-1));
      const [dx, dy] = [bx - ax, by - ay];
      const reach = Math.hypot(dx, dy) || 1;
      let aside = 0;
      for (const node of piece) {
        const [px, py] = view.screen(node);
        aside += ((px - ax) * -dy + (py - ay) * dx) / reach;
      }
      const bow = piece.length > 2 ? Math.max(-0.3 * reach, Math.min(0.3 * reach, aside / piece.length)) : 0;
      pen.globalAlpha = 0.5 * grown;
      pen.lineWidth = (width + 4) * (0.4 + 0.6 * grown);
      pen.beginPath();
      pen.moveTo(ax, ay);
      pen.quadraticCurveTo((ax + bx) / 2 + (2 * bow * -dy) / reach, (ay + by) / 2 + (2 * bow * dx) / reach, bx, by);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}
