// Three methods side by side on the same problem.
import { count, element, shown } from "./look.js";
import { Plan } from "./plan.js";
import { Run } from "./solve.js";
import { MapView } from "./view.js";

const $ = (id) => document.getElementById(id);
const NAMES = ["local", "neural", "auto"];
const TIE = 5e-5; // of the cost: what would be shown as 0.00 %

export class Race {
  constructor(app, stage) {
    Object.assign(this, { app, runs: [] });
    this.lanes = NAMES.map((name) => {
      const canvas = element("canvas", { tabIndex: 0, role: "img" });
      canvas.setAttribute("aria-label", `${name}: no solution yet`);
      const cost = element("span", { textContent: "–" });
      const note = element("small", { textContent: "" });
      const figure = element("figure", {}, canvas, element("figcaption", {}, element("b", { textContent: name }), cost, note));
      figure.dataset.name = name;
      stage.append(figure);
      return { name, canvas, cost, note, figure, map: new MapView(canvas, { padding: 34 }) };
    });
    const narrow = matchMedia("(max-width: 860px)"); // captions are beside the maps there
    const place = () => { for (const lane of this.lanes) { lane.map.top = narrow.matches ? 4 : 70; lane.map.padding = narrow.matches ? 14 : 34; } };
    narrow.addEventListener("change", place);
    place();
    this.maps = this.lanes.map((lane) => lane.map);
    $("race").onclick = () => this.start().catch(app.fail);
    $("race-stop").onclick = () => this.runs.forEach((run) => { if (run.running && run.id) run.stop().catch(app.fail); });
    setInterval(() => { if (this.running) this.show(); }, 200);
  }

  get running() { return this.runs.some((run) => run.running); }

  open() {
    const { problem } = this.app;
    this.runs = [];
    for (const lane of this.lanes) {
      if (problem?.drawing.x) lane.map.show(new Plan(problem.drawing));
      else { lane.map.plan = null; lane.map.refresh(); }
      lane.cost.textContent = "–";
      lane.note.textContent = this.can(lane) ? "" : "does not know problems of this kind";
      lane.figure.classList.remove("wins");
    }
    $("race-table").replaceChildren();
    this.buttons();
  }

  can(lane) { return lane.map.plan?.knows(lane.name) ?? true; }

  seen(is) {
    if (!is) return;
    this.maps.forEach((map) => map.resize());
    this.show();
  }

  leave() { this.runs.forEach((run) => run.leave()); this.runs = []; }

  buttons() {
    $("race").disabled = !this.app.problem || this.app.problem.drawing.n < 5;
    $("race").hidden = this.running;
    $("race-stop").hidden = !this.running;
  }

  async start() {
    this.app.calm();
    this.leave();
    this.open();
    this.seconds = this.app.seconds();
    const { body, drawing } = this.app.problem;
    this.runs = this.lanes.filter((lane) => this.can(lane)).map((lane) => {
      const plan = lane.map.plan ?? new Plan(drawing);
      const run = new Run(plan, {
        change: (_, added) => lane.map.changed(added),
        state: () => this.show(),
        end: () => this.show(),
        fail: this.app.fail,
      });
      run.lane = lane;
      return run;
    });
    const seed = 1;
    try {
      await Promise.all(this.runs.map((run) => run.start({ ...body, method: run.lane.name, seconds: this.seconds, seed })));
    } catch (error) {
      this.leave();
      this.app.fail(error);
    }
    this.show();
  }

  show() {
    this.buttons();
    if (this.app.view !== "race") return;
    this.app_chart ??= globalThis.drhg.solve.chart;
    this.app_chart.show(this.runs.map((run) => ({ name: run.lane.name, colour: `curve-${run.lane.name}`, points: run.trace, until: Math.min(run.seconds, this.seconds) })), this.seconds);
    const costs = this.runs.map((run) => run.cost ?? Infinity);
    const best = Math.min(...costs);
    const over = this.runs.length > 0 && !this.running;
    for (const run of this.runs) {
      const { lane } = run;
      lane.cost.textContent = shown(run.cost);
      const behind = run.cost === null ? "" : run.cost <= best * (1 + TIE) ? "best" : `+${((100 * (run.cost - best)) / best).toFixed(2)} %`;
      const state = run.state === "queued" ? "waiting for a free worker" : run.state === "sending" ? "sending" : `${run.seconds.toFixed(1)} s`;
      lane.note.textContent = [state, behind].filter(Boolean).join(" · ");
      lane.figure.classList.toggle("wins", over && run.cost <= best * (1 + TIE));
      if (over) lane.canvas.setAttribute("aria-label", `${lane.name}: cost ${shown(run.cost)}, ${behind}`);
    }
    this.table(best);
  }

  table(best) {
    if (!this.runs.length) return;
    const heads = ["", "cost", "behind", "iterations"].map((text) => element("th", { scope: "col" }, element("button", { textContent: text || "method", tabIndex: -1, disabled: true })));
    const rows = [...this.runs].sort((a, b) => (a.cost ?? Infinity) - (b.cost ?? Infinity)).map((run) => element("tr", {},
      element("td", {}, element("b", { textContent: run.lane.name })),
      element("td", { textContent: shown(run.cost) }),
      element("td", { textContent: run.cost === null ? "" : run.cost <= best * (1 + TIE) ? "–" : `${((100 * (run.cost - best)) / best).toFixed(2)} %` }),
      element("td", { textContent: count(run.result?.iterations ?? run.iterations ?? 0) })));
    $("race-table").replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)));
  }
}
