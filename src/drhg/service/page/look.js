// Colours and numbers as people see them.

const NAMES = ["page", "panel", "ink", "soft", "line", "accent", "map", "grid", "tour", "node", "depot", "fresh", "gone", "hyper", "new", "faint", "curve-auto", "curve-local", "curve-neural"];
let known = null;

export function colours() {
  if (!known) {
    const style = getComputedStyle(document.documentElement);
    known = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    known.dark = document.documentElement.dataset.theme === "dark";
  }
  return known;
}

const listeners = [];
export const onTheme = (listener) => listeners.push(listener);

export function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  known = null;
  listeners.forEach((listener) => listener());
}

// Colours far apart for routes with numbers close together.
export function routeColour(number, dark) {
  const hue = (number * 137.508 + 205) % 360;
  const light = dark ? 66 + (number % 3) * 6 : 40 + (number % 3) * 7;
  return `hsl(${hue.toFixed(0)} ${dark ? 65 : 62}% ${light}%)`;
}

export function shown(cost) {
  if (cost === null || cost === undefined) return "–";
  const digits = Number.isInteger(cost) || Math.abs(cost) >= 10000 ? 0 : Math.abs(cost) >= 100 ? 1 : Math.abs(cost) >= 1 ? 3 : 5;
  return cost.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// A time: h:mm of the day where it is in seconds, else the number.
export function time(value, clock) {
  if (!clock) return count(Math.round(value * 10) / 10);
  const minutes = Math.round(value / 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
}

export const count = (number) => number.toLocaleString("en");

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
