// The page: which problem, which view, and what they share.
import * as api from "./api.js";
import { element, count, setTheme, time } from "./look.js";
import { Plan } from "./plan.js";
import { fromPoints, fromSample, fromText } from "./problem.js";
import { Race } from "./race.js";
import { SAMPLES } from "./samples.js";
import { Solve } from "./solve.js";
import { Steps } from "./step.js";
import { MapView } from "./view.js";

const $ = (id) => document.getElementById(id);
const VIEWS = ["solve", "step", "race"];
const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300];

const app = {
  problem: null,
  limits: { seconds: 300, nodes: 100000, workers: 1 },
  view: "solve",
  seconds: () => Math.min(SECONDS[$("seconds").value], app.limits.seconds),
  fail(error) {
    if (error.name === "AbortError") return;
    $("error-title").textContent = error.title ?? "Something went wrong";
    $("error-detail").textContent = error.detail ?? String(error);
    $("error").hidden = false;
    if (!(error instanceof api.Problem)) console.error(error);
  },
  calm() { $("error").hidden = true; },
};

const hover = (map) => (node, at) => {
  const plan = map().plan;
  $("tip").hidden = node < 0;
  if (node < 0) return;
  const demand = plan.demand?.[node];
  const what = node === plan.depot ? "depot" : demand ? `demand ${count(demand)}` : "";
  const [early, late] = plan.windows?.[node] ?? [0, null];
  const open = late !== null ? `open ${time(early, plan.clock)}–${time(late, plan.clock)}` : early > 0 ? `open from ${time(early, plan.clock)}` : "";
  const there = plan.arrivals?.get(node);
  const arrives = there === undefined ? "" : `reached ${time(there, plan.clock)}`;
  $("tip").textContent = [plan.called(node), what, open, arrives].filter(Boolean).join(" · ");
  $("tip").style.left = `${Math.min(at[0] + 14, $("stage").clientWidth - $("tip").offsetWidth - 6)}px`;
  $("tip").style.top = `${at[1] + 12}px`;
};

const solveMap = new MapView(document.querySelector("#map-solve canvas"), {
  onHover: hover(() => solveMap),
  onClick: (x, y, node) => clicked(x, y, node),
});
const stepMap = new MapView(document.querySelector("#map-step canvas"), { onHover: hover(() => stepMap) });
const solve = new Solve(app, solveMap);
const steps = new Steps(app, stepMap, solve);
const race = new Race(app, $("map-race"));
const parts = { solve, step: steps, race };
Object.assign(globalThis, { drhg: { app, solve, steps, race, solveMap, stepMap } }); // for tests and the curious

// --- problems ---

app.open = (problem, { keepCamera = false } = {}) => {
  app.calm();
  solve.leave();
  race.leave();
  app.problem = problem;
  const { drawing } = problem;
  $("empty").hidden = true;
  $("clear").disabled = false;
  $("about").replaceChildren(element("b", { textContent: drawing.name }), element("span", { textContent: described(drawing) }));
  $("capacity-row").hidden = !(problem.points || problem.body.table);
  const camera = solveMap.camera;
  const plan = new Plan(drawing);
  solve.open(plan);
  if (keepCamera) { solveMap.camera = camera; solveMap.refresh(); }
  steps.open();
  race.open();
  solveMap.canvas.classList.toggle("pen", Boolean(problem.points));
  if (drawing.n > app.limits.nodes) app.fail({ title: "Too large", detail: `This service takes at most ${count(app.limits.nodes)} nodes.` });
};

function described({ n, depot, demand, capacity, x, windows }) {
  const size = depot === null ? `${count(n)} stops, one tour` : `${count(n - 1)} customers, one depot`;
  const load = demand && capacity !== null ? `, vehicles carry ${count(capacity)}` : "";
  return size + load + (windows ? ", with time windows" : "") + (x ? "" : " (distances only, nothing to draw)");
}

app.clear = () => {
  solve.leave();
  race.leave();
  app.problem = null;
  app.calm();
  history.replaceState(null, "", location.pathname);
  solveMap.plan = null;
  solveMap.camera = { x: 500, y: 500, scale: Math.min(solveMap.wide, solveMap.high) / 1100 };
  solveMap.refresh();
  solveMap.canvas.classList.add("pen");
  solveMap.canvas.setAttribute("aria-label", "An empty map");
  solve.reset();
  steps.open();
  race.open();
  $("empty").hidden = false;
  $("clear").disabled = true;
  $("capacity-row").hidden = true;
  $("about").textContent = "Nothing yet.";
};

let given = null; // the text at hand, which may need a capacity still

async function read(text, name) {
  given = { text, name };
  try {
    const wanted = $("deliveries").checked && !$("capacity-row").hidden ? Number($("capacity").value) : 0;
    app.open(await fromText(text, name, wanted));
  } catch (error) {
    if (error.status === 422 && /give capacity/.test(error.detail)) {
      $("capacity-row").hidden = false;
      $("deliveries").checked = true;
      error = { title: "One more thing", detail: "The stops have demands: say below what a vehicle carries, and press Enter." };
      $("capacity").focus();
    }
    app.fail(error);
  }
}

const readFile = async (file) => read(await file.text(), file.name);

function clicked(x, y, node) {
  if (app.problem && !app.problem.points) { solve.pick(node); return; }
  if (solve.running) return;
  given = null;
  const points = [...(app.problem?.points ?? []), [Math.round(x * 10) / 10, Math.round(y * 10) / 10]];
  redraw(points);
}

const redraw = (points) => app.open(fromPoints(points, $("deliveries").checked ? Number($("capacity").value) || 1 : 0), { keepCamera: true });

for (const id of ["deliveries", "capacity"]) {
  $(id).addEventListener("change", () => {
    if (app.problem?.points) redraw(app.problem.points);
    else if (given) read(given.text, given.name);
  });
}
SAMPLES.forEach(({ title, note }, number) => {
  const chip = element("button", { textContent: title, onclick: () => { given = null; app.open(fromSample(number)); } });
  if (note) chip.append(" ", element("small", { textContent: note }));
  $("samples").append(chip);
});
$("open").onclick = () => $("file").click();
$("file").onchange = () => { if ($("file").files[0]) readFile($("file").files[0]); $("file").value = ""; };
$("clear").onclick = () => { given = null; app.clear(); $("open").focus(); };
$("error-close").onclick = app.calm;
$("paste").onclick = () => $("paste-dialog").showModal();
$("paste-dialog").addEventListener("close", () => {
  const text = $("paste-text").value;
  if ($("paste-dialog").returnValue === "read" && text.trim()) read(text, null);
});

let dragging = 0;
const carries = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragenter", (event) => { if (carries(event)) { dragging++; $("drop").hidden = false; } });
addEventListener("dragleave", () => { dragging = Math.max(0, dragging - 1); $("drop").hidden = dragging === 0; });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  dragging = 0;
  $("drop").hidden = true;
  const file = event.dataTransfer?.files[0];
  if (file) readFile(file);
});

// --- views ---

function turnTo(view) {
  app.view = view;
  for (const name of VIEWS) {
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
    $(`map-${name}`).hidden = name !== view;
  }
  $("stage").setAttribute("aria-labelledby", `tab-${view}`);
  for (const part of document.querySelectorAll("[data-view]")) {
    if (part.id === "routes-card" || part.id === "files-card") continue;
    part.hidden = !part.dataset.view.split(" ").includes(view);
  }
  $("tip").hidden = true;
  solve.cards();
  for (const name of VIEWS) parts[name].seen?.(name === view);
}
VIEWS.forEach((view, i) => {
  const tab = $(`tab-${view}`);
  tab.onclick = () => turnTo(view);
  tab.onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const other = VIEWS[(i + move + VIEWS.length) % VIEWS.length];
    turnTo(other);
    $(`tab-${other}`).focus();
  };
});
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.onclick = () => {
    for (const map of { solve: [solveMap], step: [stepMap], race: race.maps }[app.view]) {
      if (button.dataset.zoom === "fit") map.fit();
      else map.zoom(button.dataset.zoom === "in" ? 1.4 : 1 / 1.4);
    }
  };
}
const showSeconds = () => { $("seconds-shown").textContent = app.seconds(); };
$("seconds").oninput = showSeconds;

const stored = localStorage.getItem("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(stored ?? (dark.matches ? "dark" : "light"));
dark.onchange = () => { if (!localStorage.getItem("theme")) setTheme(dark.matches ? "dark" : "light"); };
$("theme").onclick = () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", theme);
  setTheme(theme);
};

// --- the service ---

async function look() {
  const found = await api.health();
  const words = {
    ready: `${found.ready} worker${found.ready === 1 ? "" : "s"} ready`,
    warming: "getting ready: kernels are being loaded",
    lost: "the service is not there; trying again",
  };
  if ($("service").dataset.state !== found.status) $("service").dataset.state = found.status;
  if ($("service").textContent !== words[found.status]) $("service").textContent = words[found.status];
  setTimeout(look, found.status === "ready" ? 4000 : 700);
}
look();
api.get("limits").then((limits) => {
  app.limits = limits;
  $("seconds").max = String(SECONDS.filter((s) => s <= limits.seconds).length - 1 || 0);
  showSeconds();
}).catch(app.fail);
showSeconds();
app.clear = app.clear.bind(app);
const linked = /^#solve=([0-9a-f]{32})$/.exec(location.hash);
if (linked) solve.resume(linked[1]);
else { solveMap.camera = { x: 500, y: 500, scale: Math.min(solveMap.wide, solveMap.high) / 1100 }; solveMap.canvas.classList.add("pen"); solve.reset(); }
