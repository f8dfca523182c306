// Cost over time, one stair per curve.
import { colours, shown } from "./look.js";

export class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.curves = [];
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  // Curves: {name, colour (a CSS variable), points: [[seconds, cost], ...], until}
  show(curves, seconds) {
    this.curves = curves.filter((curve) => curve.points.length);
    this.seconds = seconds;
    if (!this.waiting) {
      this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
    }
  }

  draw() {
    const { canvas, curves } = this;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    if (!wide || !high) return;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const look = colours();
    pen.font = "11.5px system-ui, sans-serif";
    const box = { left: 2, right: wide - 2, top: 18, bottom: high - 20 };
    pen.strokeStyle = look.line;
    pen.beginPath();
    pen.moveTo(box.left, box.bottom + 0.5);
    pen.lineTo(box.right, box.bottom + 0.5);
    pen.stroke();
    pen.fillStyle = look.soft;
    if (!curves.length) {
      pen.textAlign = "center";
      pen.fillText("the cost will fall here", wide / 2, high / 2);
      return;
    }
    const last = Math.max(this.seconds || 0, 0.05, ...curves.map((c) => c.until || c.points.at(-1)[0]));
    const lows = curves.map((curve) => curve.points.at(-1)[1]);
    const low = Math.min(...lows);
    // the first solution is so much worse that the rest would be a line: 12 % above the best is enough
    const high0 = Math.max(...curves.map((curve) => curve.points[0][1]));
    const top = Math.min(high0, low * 1.12) + 1e-12;
    const span = Math.max(top - low, Math.abs(low) * 0.004);
    const x = (s) => box.left + (box.right - box.left) * Math.sqrt(Math.min(1, s / last));
    const y = (c) => box.bottom - 6 - (box.bottom - box.top - 6) * Math.min(1.25, (c - low) / span);
    pen.save();
    pen.beginPath();
    pen.rect(0, 4, wide, box.bottom - 4);
    pen.clip();
    for (const curve of curves) {
      const end = curve.until || curve.points.at(-1)[0];
      pen.beginPath();
      pen.moveTo(x(curve.points[0][0]), y(curve.points[0][1]));
      let before = curve.points[0][1];
      for (const [s, c] of curve.points) {
        pen.lineTo(x(s), y(before));
        pen.lineTo(x(s), y(c));
        before = c;
      }
      pen.lineTo(x(end), y(before));
      pen.strokeStyle = look[curve.colour];
      pen.lineWidth = 2;
      pen.lineJoin = "round";
      pen.stroke();
      if (curves.length === 1) {
        pen.lineTo(x(end), box.bottom);
        pen.lineTo(x(curve.points[0][0]), box.bottom);
        const shade = pen.createLinearGradient(0, box.top, 0, box.bottom);
        shade.addColorStop(0, look[curve.colour] + "55");
        shade.addColorStop(1, look[curve.colour] + "06");
        pen.fillStyle = shade;
        pen.fill();
      }
      pen.beginPath();
      pen.arc(x(end), y(before), 3.4, 0, 7);
      pen.fillStyle = look[curve.colour];
      pen.fill();
    }
    pen.restore();
    pen.fillStyle = look.soft;
    pen.textAlign = "right";
    pen.fillText(shown(top), box.right, 12);
    pen.textAlign = "left";
    pen.fillText("0", box.left, high - 5);
    pen.textAlign = "right";
    pen.fillText(`${last < 10 ? last.toFixed(1) : Math.round(last)} s`, box.right, high - 5);
    canvas.setAttribute("aria-label", `Cost over time: ${curves.map((c) => `${c.name} from ${shown(c.points[0][1])} to ${shown(c.points.at(-1)[1])}`).join("; ")}`);
  }
}
