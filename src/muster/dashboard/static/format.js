// How values are written: as the terminal and the reports write them.

export const LIVE = new Set(["queued", "running", "waiting", "interrupted"]);
export const STATUS_ORDER = ["failed", "error", "timed_out", "unjudged", "flaky", "waiting", "skipped", "passed"];
const WORDS = { pending_review: "in review" };

/** What a run is called: its name, else what it is about, else its id. */
export const titleOf = (run) => run.name ?? run.subject ?? `${capital(run.kind)} ${run.id}`;

export const word = (name) => WORDS[name] ?? String(name).replaceAll("_", " ");
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
export const percent = (share, places = 0) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(places)}%`);
export const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
export const count = (value, noun, several = `${noun}s`) => `${number(value)} ${value === 1 ? noun : several}`;

/** Cents when it is round, else four or six places. */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  const micro = Math.round(1e6 * dollars);
  return `$${(micro / 1e6).toFixed(micro % 10_000 === 0 ? 2 : micro % 100 === 0 ? 4 : 6)}`;
}

/** Money where many amounts stand together: cents when it is round, else two places that say something; `usd` has the exact amount as its title. */
export function shortMoney(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  if (dollars >= 1 || Math.round(1e6 * dollars) % 10_000 === 0) return `$${dollars.toFixed(2)}`;
  if (dollars < 0.0001) return "<$0.0001";
  return `$${dollars.toFixed(Math.max(2, 1 - Math.floor(Math.log10(dollars))))}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 100) return `${minutes} min ${Math.round(seconds) % 60} s`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} days`;
}

export const at = (text) => (text ? Date.parse(text) : null);

export function elapsed(begin, end, now = Date.now()) {
  return begin ? Math.max(0, ((end ? at(end) : now) - at(begin)) / 1000) : null;
}

export function ago(text, now = Date.now()) {
  if (!text) return "–";
  const seconds = (now - at(text)) / 1000;
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return day(text);
}

// Lists say how long ago something was, and for what is older its day; the exact moment is their title.
export function day(text) {
  if (!text) return "–";
  const zone = text.includes("T") ? {} : { timeZone: "UTC" }; // a day without a time is one of the ledger
  return new Date(at(text)).toLocaleDateString("en-GB", { dateStyle: "medium", ...zone });
}

export const clock = (text) => (text ? new Date(at(text)).toLocaleTimeString("en-GB") : "–");
export const moment = (text) => (text ? new Date(at(text)).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "–");
