// Everything on this page is made here: text only ever goes in as text.
const data = JSON.parse(document.getElementById("data").textContent);
const WORDS = {
  passed: "passed", failed: "failed", error: "error", timed_out: "timed out", flaky: "flaky", unjudged: "unjudged", waiting: "waiting", skipped: "skipped",
};
const ORDER = ["failed", "error", "timed_out", "unjudged", "flaky", "waiting", "skipped", "passed"]; // the worst first
const SVG = "http://www.w3.org/2000/svg";

/** Make an element: `attributes.text` becomes its text, functions become listeners. */
function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an element of a drawing. */
function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") element.textContent = value;
    else if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const percent = (share, places = 0) => (share === null ? "–" : `${(100 * share).toFixed(places)}%`);
const number = (value) => value.toLocaleString("en");
const score = (value) => (value === null ? "–" : value.toFixed(2));

/** Cents when it is round, else four or six places: as the terminal writes money. */
function money(dollars) {
  if (dollars === null) return "–";
  const micro = Math.round(1e6 * dollars);
  return `$${(micro / 1e6).toFixed(micro % 10000 === 0 ? 2 : micro % 100 === 0 ? 4 : 6)}`;
}

function time(seconds) {
  if (seconds === null) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  return seconds < 100 ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : `${Math.round(seconds)} s`;
}

const badge = (status) => make("span", { class: `badge c-${status}`, text: WORDS[status] });
const tags = (names) => names.map((name) => make("span", { class: "tag", text: name }));
