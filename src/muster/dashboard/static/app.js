// The shell: where one is, what is shown there, and whether the server can be reached.
import { Boundary, html, render, useEffect, useRef, useState, useTicks } from "./html.js";
import { access, enterToken, forgetToken, hasToken, newKey, ping, streams } from "./http.js";
import { toSearch, useKeys } from "./keys.js";
import { Later, Strip } from "./parts.js";
import { RunsView } from "./runs.js";

const [PING, LOST_PING] = [5000, 1500]; // milliseconds after which the server is asked whether it is there
const ICON = new URL("./icon.svg", import.meta.url).pathname;
const PLACES = [["runs", "Runs"], ["tasks", "Tasks"], ["pool", "Pool"], ["batches", "Batches"], ["trend", "Trend"], ["compare", "Compare"], ["money", "Money"], ["start", "Start"]];

const later = (file, name) => () => import(`./${file}.js`).then((module) => module[name]);

// A view is loaded when it is first opened; the list of runs, with which one begins, is there from the start.
const VIEWS = {
  runs: { one: later("run", "RunView") },
  tasks: { all: later("tasks", "TasksView"), one: later("tasks", "TaskView") },
  pool: { all: later("pool", "PoolView") },
  batches: { all: later("batches", "BatchesView"), one: later("batches", "BatchView") },
  money: { all: later("money", "MoneyView") },
  trend: { all: later("trend", "TrendView") },
  compare: { all: later("compare", "CompareView") },
  start: { all: later("start", "StartView"), one: later("start", "StartView") },
};

function readRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [place, id = "", ...rest] = path.split("/").map(decoded);
  return { place: place || "runs", id, rest, query: new URLSearchParams(query), known: id !== null };
}

/** A part of the address; null for what is spelled wrongly, or would be more than one part of the address of a route. */
function decoded(part) {
  try {
    const text = decodeURIComponent(part);
    return /\/|^\.\.?$/.test(text) ? null : text;
  } catch {
    return null;
  }
}

history.scrollRestoration = "manual"; // lists are loaded page by page, so only they know when a place can be reached
const places = new Map(); // how far down one was, by the entries of the history
let entry = entryOf();

/** The name of the entry of the history that is shown. */
function entryOf() {
  if (!history.state?.entry) history.replaceState({ entry: newKey() }, "");
  return history.state.entry;
}

/** Scroll to where one was, as soon as so much is loaded; whoever does anything meanwhile stays where they are. */
function scrollBack(target) {
  scrollTo(0, target);
  if (scrollY >= target) return undefined;
  const stop = new AbortController();
  const watch = new ResizeObserver(() => {
    scrollTo(0, target);
    if (scrollY >= target) stop.abort();
  });
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(name, () => stop.abort(), { passive: true, signal: stop.signal });
  stop.signal.addEventListener("abort", () => watch.disconnect());
  watch.observe(document.body);
  return () => stop.abort();
}

function useRoute() {
  const [route, tell] = useState(readRoute());
  useEffect(() => {
    const change = () => {
      places.set(entry, scrollY);
      entry = entryOf();
      tell(readRoute());
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

function Page() {
  const route = useRoute();
  const state = access.use();
  useTicks(state === "lost" ? LOST_PING : PING, () => ping(state === "lost" ? LOST_PING : PING), [state]);
  useKeys({ "/": toSearch });
  const main = useRef(null);
  const where = `${route.place}/${route.id}`;
  const before = useRef(where);
  useEffect(() => {
    if (before.current === where) return undefined;
    before.current = where;
    main.current?.focus({ preventScroll: true }); // so that the keyboard goes on in what is new
    return scrollBack(places.get(entry) ?? 0);
  }, [where]);
  useEffect(() => {
    document.title = [PLACES.find(([name]) => name === route.place)?.[1], "Muster"].filter(Boolean).join(" · ");
  }, [route.place]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/runs"><img src=${ICON} alt="" width="26" height="26" />Muster</a>
      <${Strip} label="Main" value=${route.place}>
        ${PLACES.map(([name, text]) => html`<a key=${name} href=${`#/${name}`} aria-current=${route.place === name ? "page" : undefined}>${text}</a>`)}
      <//>
      <${Connection} state=${state} />
    </header>
    <main id="main" ref=${main} tabindex="-1">
      ${state === "token" ? html`<${TokenForm} />` : html`<${Boundary} key=${where} what="This page"><${View} route=${route} /><//>`}
    </main>`;
}

const WORDS = {
  open: ["connected", "The server answers."],
  live: ["live", "What happens is shown as it happens."],
  lost: ["not connected", "The server cannot be reached; this page tries again by itself."],
  token: ["locked", "A token is needed."],
};

function Connection({ state }) {
  const live = streams.use() > 0;
  const kind = state === "open" && live ? "live" : state;
  const [text, title] = WORDS[kind];
  return html`<div class="connection">
    <span class=${`lamp is-${kind}`} role="status" title=${title}>${text}</span>
    ${state === "open" && hasToken() && html`<button type="button" class="plain small" onClick=${forgetToken}>Sign out</button>`}
  </div>`;
}

function View({ route }) {
  if (route.place === "runs" && route.id === "") return html`<${RunsView} />`;
  const load = route.known && VIEWS[route.place]?.[route.id ? "one" : "all"];
  if (!load) return html`<div class="empty"><h1>There is no such page</h1><p><a href="#/runs">Go to the runs</a></p></div>`;
  return html`<${Later} load=${load} ...${route} />`;
}

function TokenForm() {
  const [wrong, tell] = useState(hasToken());
  const send = (event) => {
    event.preventDefault();
    const token = new FormData(event.target).get("token").trim();
    tell(true);
    if (token) enterToken(token);
  };
  return html`<form class="card token" onSubmit=${send}>
    <h1>This server needs a token</h1>
    <p class="soft">It is the secret of one of the <code>[[tokens]]</code> in the server's muster.toml. It stays in this tab and is sent to this server only.</p>
    ${wrong && html`<p class="bad" role="alert">This token was not accepted.</p>`}
    <label for="token">Token</label>
    <input id="token" name="token" type="password" autocomplete="off" required />
    <button class="main" type="submit">Continue</button>
  </form>`;
}

render(html`<${Page} />`, document.getElementById("page"));
