// A map to move around in. Large solutions are drawn in slices of a few milliseconds into a picture
// that follows the camera at once, so that moving stays smooth whatever their size.
import { colours, onTheme, routeColour } from "./look.js";

const SLICE = 7; // milliseconds of drawing per frame
const LARGE = 3000; // nodes from which on a picture takes more than a frame
const STRETCH = 800; // points of a line between two looks at the clock
const FRESH = 900; // milliseconds that a new edge glows
const MOST_FRESH = 4000; // new edges that glow at a time

export class MapView {
  constructor(canvas, { onHover, onClick, padding } = {}) {
    Object.assign(this, { canvas, onHover, onClick, padding: padding ?? 46 });
    this.plan = null;
    this.camera = { x: 500, y: 500, scale: 0.6 };
    this.fresh = []; // [a, b, when]
    this.picked = -1; // a route that stands out
    this.overlay = null; // draws on top: (pen, view, now) => whether it goes on moving
    this.shows = true; // whether the solution itself is drawn
    this.fades = 1; // how strongly
    this.front = null; // the finished picture: {canvas, camera}
    this.job = null; // the unfinished one
    this.fitted = true; // until somebody moves
    this.frames = { worst: 0, count: 0, last: 0 };
    new ResizeObserver(() => { this.resize(); }).observe(canvas);
    onTheme(() => this.refresh());
    this.listen();
    this.resize();
  }

  // --- what is shown ---

  show(plan) {
    this.plan = plan;
    this.fresh = [];
    this.picked = -1;
    this.fit();
  }

  // The solution has changed; these edges are new.
  changed(added = []) {
    const now = performance.now();
    if (this.fresh.length < MOST_FRESH) {
      for (const [a, b] of added.slice(0, MOST_FRESH - this.fresh.length)) this.fresh.push([a, b, now]);
    }
    this.refresh();
  }

  refresh() {
    this.dirty = true;
    this.wake();
  }

  bounds(nodes) {
    const { x, y, n } = this.plan;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    const look = (i) => {
      if (x[i] < left) left = x[i];
      if (x[i] > right) right = x[i];
      if (y[i] < low) low = y[i];
      if (y[i] > high) high = y[i];
    };
    if (nodes) nodes.forEach(look);
    else for (let i = 0; i < n; i++) look(i);
    return { left, right, low, high };
  }

  cameraFor(nodes, pad = this.padding) {
    const { left, right, low, high } = this.bounds(nodes);
    const top = Math.min(this.high / 4, this.top ?? 0);
    const scale = Math.min((this.wide - 2 * pad) / (right - left || 1), (this.high - top - 2 * pad) / (high - low || 1));
    return { x: (left + right) / 2, y: (low + high) / 2 + top / 2 / scale, scale: Math.max(scale, 1e-12) };
  }

  fit() {
    this.fitted = true;
    if (this.plan?.x && this.plan.n > 1 && !this.plan.draft) this.camera = this.cameraFor();
    this.refresh();
  }

  flyTo(camera, milliseconds = 700) {
    const from = { ...this.camera };
    const began = performance.now();
    this.flight = (now) => {
      const t = Math.min(1, (now - began) / milliseconds);
      const e = t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2;
      const scale = from.scale * (camera.scale / from.scale) ** e;
      // the middle moves in step with the scale, or it would swing
      const share = Math.abs(camera.scale / from.scale - 1) < 1e-6 ? e : (1 / scale - 1 / from.scale) / (1 / camera.scale - 1 / from.scale);
      this.camera = { x: from.x + (camera.x - from.x) * share, y: from.y + (camera.y - from.y) * share, scale };
      if (t === 1) { this.flight = null; this.camera = { ...camera }; }
      this.dirty = true;
    };
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) { this.camera = camera; this.flight = null; this.dirty = true; }
    this.wake();
  }

  zoom(factor, px = this.wide / 2, py = this.high / 2) {
    const [wx, wy] = this.world(px, py);
    const scale = this.camera.scale * factor;
    this.camera = { x: wx - (px - this.wide / 2) / scale, y: wy + (py - this.high / 2) / scale, scale };
    this.fitted = false;
    this.refresh();
  }

  world(px, py) {
    const { x, y, scale } = this.camera;
    return [x + (px - this.wide / 2) / scale, y - (py - this.high / 2) / scale];
  }

  screen(i) {
    const { x, y, scale } = this.camera;
    return [(this.plan.x[i] - x) * scale + this.wide / 2, (y - this.plan.y[i]) * scale + this.high / 2];
  }

  // --- frames ---

  resize() {
    this.ratio = devicePixelRatio || 1;
    [this.wide, this.high] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.canvas.width = Math.max(1, Math.round(this.wide * this.ratio));
    this.canvas.height = Math.max(1, Math.round(this.high * this.ratio));
    this.front = this.job = null;
    if (this.fitted && this.wide) this.fit();
    else this.refresh();
  }

  wake() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    this.frame = 0;
    if (!this.wide || !this.high) return;
    const began = performance.now();
    this.flight?.(now);
    if (this.dirty && !this.job) { this.job = this.begin(); this.dirty = false; }
    if (this.job) this.advance(began);
    const moving = this.paint(now);
    const spent = performance.now() - began;
    this.frames = { worst: Math.max(this.frames.worst, spent), count: this.frames.count + 1, last: spent };
    if (this.job || this.dirty || this.flight || moving || this.fresh.length) this.wake();
  }

  begin() {
    // the picture before the last one is painted over, so that nothing is allocated
    const large = (this.plan?.n ?? 0) > LARGE;
    const canvas = this.spare?.large === large ? this.spare : document.createElement("canvas");
    this.spare = null;
    canvas.large = large;
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const pen = canvas.getContext("2d", { willReadFrequently: large });
    pen.scale(this.ratio, this.ratio);
    return { canvas, pen, large, camera: { ...this.camera }, steps: this.drawing(pen, { ...this.camera }) };
  }

  advance(began) {
    const job = this.job;
    for (;;) {
      if (job.steps.next().done) {
        this.spare = this.front?.canvas ?? null;
        this.front = job;
        this.job = null;
        return;
      }
      // browsers put strokes off until somebody looks, all of them into one frame
      if (job.large) job.pen.getImageData(0, 0, 1, 1);
      if (performance.now() - began > SLICE) return;
    }
  }

  paint(now) {
    const pen = this.canvas.getContext("2d");
    const look = colours();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = look.map;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    pen.scale(this.ratio, this.ratio);
    this.paintGrid(pen, look);
    if (this.front) {
      const { camera, canvas } = this.front;
      const size = this.camera.scale / camera.scale;
      const left = this.wide / 2 + (camera.x - this.camera.x) * this.camera.scale - (this.wide / 2) * size;
      const top = this.high / 2 - (camera.y - this.camera.y) * this.camera.scale - (this.high / 2) * size;
      pen.globalAlpha = this.fades;
      pen.drawImage(canvas, left, top, this.wide * size, this.high * size);
      pen.globalAlpha = 1;
    }
    if (!this.plan?.x) return false;
    this.paintFresh(pen, look, now);
    const moving = this.overlay ? this.overlay(pen, this, now) : false;
    if (this.plan.depot !== null) this.paintDepot(pen, look);
    if (this.hovered >= 0) this.ring(pen, this.hovered, look.ink);
    return moving;
  }

  paintGrid(pen, look) {
    const step = 10 ** Math.ceil(Math.log10(60 / this.camera.scale));
    const each = step * this.camera.scale > 300 ? step / 5 : step * this.camera.scale > 150 ? step / 2 : step;
    const [left, top] = this.world(0, 0);
    const [right, low] = this.world(this.wide, this.high);
    pen.fillStyle = look.grid;
    for (let wx = Math.ceil(left / each) * each; wx <= right; wx += each) pen.fillRect(Math.round((wx - this.camera.x) * this.camera.scale + this.wide / 2), 0, 1, this.high);
    for (let wy = Math.ceil(low / each) * each; wy <= top; wy += each) pen.fillRect(0, Math.round((this.camera.y - wy) * this.camera.scale + this.high / 2), this.wide, 1);
  }

  paintFresh(pen, look, now) {
    this.fresh = this.fresh.filter(([, , when]) => now - when < FRESH);
    if (!this.fresh.length || !this.shows) return;
    pen.strokeStyle = look.fresh;
    pen.lineCap = "round";
    pen.lineWidth = this.lineWidth() + 1.6;
    for (let group = 0; group < 8; group++) { // a few strengths, each one stroke
      pen.globalAlpha = 0.85 * (1 - (group + 0.5) / 8);
      pen.beginPath();
      for (const [a, b, when] of this.fresh) {
        if (Math.floor(((now - when) / FRESH) * 8) !== group) continue;
        pen.moveTo(...this.screen(a));
        pen.lineTo(...this.screen(b));
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  paintDepot(pen, look) {
    const [px, py] = this.screen(this.plan.depot);
    const r = Math.max(6, Math.min(10, this.dotSize() * 2.2));
    pen.fillStyle = look.depot;
    pen.strokeStyle = look.map;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.roundRect(px - r, py - r, 2 * r, 2 * r, 3.5);
    pen.stroke();
    pen.fill();
  }

  ring(pen, node, colour) {
    const [px, py] = this.screen(node);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(px, py, this.dotSize() + 5, 0, 7);
    pen.stroke();
  }

  spacing() {
    const { left, right, low, high } = (this.plan.box ??= this.bounds());
    return Math.sqrt(Math.max(1e-12, (right - left) * (high - low)) / this.plan.n) * this.camera.scale;
  }

  dotSize() { return Math.max(0.5, Math.min(4.6, this.spacing() * 0.13)); }

  lineWidth() { return Math.max(0.7, Math.min(2.4, this.spacing() * 0.09)); }

  // --- the picture itself, in slices ---

  * drawing(pen, camera) {
    const plan = this.plan;
    if (!plan?.x) return;
    const look = colours();
    const { x, y } = plan;
    const px = (i) => (x[i] - camera.x) * camera.scale + this.wide / 2;
    const py = (i) => (camera.y - y[i]) * camera.scale + this.high / 2;
    if (this.shows && plan.solved) {
      pen.lineJoin = "round";
      const width = this.lineWidth();
      const paths = plan.routes();
      const legs = plan.routed ? [plan.depot] : [];
      for (const path of paths) {
        const colour = plan.routed ? plan.colour[path[0]] : -1;
        const stands = this.picked < 0 || colour === this.picked;
        pen.strokeStyle = colour < 0 ? look.tour : routeColour(colour, look.dark);
        pen.globalAlpha = stands ? 1 : 0.16;
        pen.lineWidth = stands && this.picked >= 0 ? width + 1.2 : width;
        const stops = plan.routed || !plan.returns ? path : [...path, path[0]];
        for (let from = 0; from < stops.length - 1; from += STRETCH) {
          const to = Math.min(stops.length - 1, from + STRETCH);
          pen.beginPath();
          pen.moveTo(px(stops[from]), py(stops[from]));
          for (let k = from + 1; k <= to; k++) pen.lineTo(px(stops[k]), py(stops[k]));
          pen.stroke();
          yield;
        }
        if (legs.length) { // to and from the depot, fainter: shapes are seen better
          pen.globalAlpha *= 0.33;
          pen.beginPath();
          pen.moveTo(px(path[0]), py(path[0]));
          pen.lineTo(px(plan.depot), py(plan.depot));
          if (plan.returns) pen.lineTo(px(path.at(-1)), py(path.at(-1)));
          pen.stroke();
        }
      }
      pen.globalAlpha = 1;
    }
    yield* this.dots(pen, look, px, py);
  }

  * dots(pen, look, px, py) {
    const { plan } = this;
    const r = this.dotSize();
    for (let from = 0; from < plan.n; from += STRETCH) {
      const to = Math.min(plan.n, from + STRETCH);
      if (plan.routed && plan.solved && this.shows && r > 1.1) {
        for (let i = from; i < to; i++) {
          pen.fillStyle = plan.colour[i] < 0 ? look.node : routeColour(plan.colour[i], look.dark);
          pen.globalAlpha = this.picked < 0 || plan.colour[i] === this.picked ? 1 : 0.25;
          pen.beginPath();
          pen.arc(px(i), py(i), r, 0, 7);
          pen.fill();
        }
        pen.globalAlpha = 1;
      } else {
        pen.fillStyle = look.node;
        pen.beginPath();
        for (let i = from; i < to; i++) {
          const [a, b] = [px(i), py(i)];
          if (a < -9 || b < -9 || a > this.wide + 9 || b > this.high + 9) continue;
          if (r < 1.1) pen.rect(a - r, b - r, 2 * r, 2 * r);
          else { pen.moveTo(a + r, b); pen.arc(a, b, r, 0, 7); }
        }
        pen.fill();
      }
      yield;
    }
  }

  // --- fingers, mice and keys ---

  listen() {
    const { canvas } = this;
    const held = new Map();
    let moved = 0;
    const at = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, at(event));
      if (held.size === 1) moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) { this.hover(...at(event)); return; }
      const before = [...held.values()];
      const [ox, oy] = held.get(event.pointerId);
      held.set(event.pointerId, at(event));
      const [nx, ny] = at(event);
      moved += Math.hypot(nx - ox, ny - oy);
      if (moved < 5) return;
      canvas.classList.add("busy");
      if (held.size === 2) {
        const after = [...held.values()];
        const far = ([p, q]) => Math.hypot(p[0] - q[0], p[1] - q[1]);
        this.zoom(far(after) / (far(before) || 1), (after[0][0] + after[1][0]) / 2, (after[0][1] + after[1][1]) / 2);
      } else this.pan(nx - ox, ny - oy);
    });
    const release = (event) => {
      if (!held.delete(event.pointerId)) return;
      canvas.classList.remove("busy");
      if (event.type === "pointerup" && moved < 5) this.onClick?.(...this.world(...at(event)), this.nearest(...at(event)));
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.hover(-1e9, -1e9));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const far = 60;
      const moves = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
      if (this.onKey?.(event)) event.preventDefault();
      else if (moves[event.key]) { event.preventDefault(); this.pan(...moves[event.key]); }
      else if (event.key === "+" || event.key === "=") this.zoom(1.3);
      else if (event.key === "-") this.zoom(1 / 1.3);
      else if (event.key === "0") this.fit();
    });
  }

  pan(dx, dy) {
    this.camera = { ...this.camera, x: this.camera.x - dx / this.camera.scale, y: this.camera.y + dy / this.camera.scale };
    this.fitted = false;
    this.refresh();
  }

  nearest(px, py, reach = 13) {
    if (!this.plan?.x) return -1;
    const [wx, wy] = this.world(px, py);
    const { x, y, n } = this.plan;
    let [best, least] = [-1, (reach / this.camera.scale) ** 2];
    for (let i = 0; i < n; i++) {
      const far = (x[i] - wx) ** 2 + (y[i] - wy) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return best;
  }

  hover(px, py) {
    const node = this.nearest(px, py);
    if (node === this.hovered) return;
    this.hovered = node;
    this.onHover?.(node, node < 0 ? null : this.screen(node));
    this.wake();
  }
}
