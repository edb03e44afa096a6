// Everything that this page knows comes from here: requests to the server that sent it, and the streams of runs.
import { early, headers, KEPT } from "./early.js";
import { observable, useChange, useEffect, useState } from "./html.js";

const LONGEST_PAUSE = 10_000;

/** What the server says of this page: "open", "token" when one is needed, "lost" when it cannot be reached. */
export const access = observable("open");
/** How many streams are open, for the sign in the corner. */
export const streams = observable(0);

export class ApiError extends Error {
  constructor(status, code, message, fields = []) {
    super(message);
    Object.assign(this, { status, code, fields });
  }
}

export function enterToken(token) {
  sessionStorage.setItem(KEPT, token);
  access.set("open");
}

export function forgetToken() {
  sessionStorage.removeItem(KEPT);
  access.set("token");
}

export const hasToken = () => sessionStorage.getItem(KEPT) !== null;

let heard = 0; // when the server answered last

/** Ask the server whether it is there, unless it has answered within so many milliseconds. */
export async function ping(milliseconds) {
  if (access.get() !== "lost" && Date.now() - heard < milliseconds) return;
  try {
    await fetch("/healthz", { cache: "no-store", credentials: "omit" });
    heard = Date.now();
    if (access.get() === "lost") access.set("open");
  } catch {
    access.set("lost");
  }
}

/** Act when the server can be reached again. */
export function useReturn(act) {
  const state = access.use();
  useChange([state], () => state === "open" && act());
}

async function send(path, options) {
  let response;
  try {
    response = await (early(path) ?? fetch(path, { cache: "no-store", credentials: "omit", ...options }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    access.set("lost");
    throw new ApiError(0, "unreachable", "The server cannot be reached. Start it again with: muster serve");
  }
  heard = Date.now();
  access.set(response.status === 401 ? "token" : "open");
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  try {
    const { error } = await response.json();
    return new ApiError(response.status, error.code, error.message, error.fields);
  } catch {
    return new ApiError(response.status, "unknown", `The server answered with status ${response.status}.`);
  }
}

export async function get(path, signal) {
  return (await send(path, { headers: headers(), signal })).json();
}

export async function getText(path) {
  return (await send(path, { headers: headers() })).text();
}

export async function post(path, body, key, method = "POST") {
  const more = key ? { "idempotency-key": key } : {};
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const kind = body === undefined ? {} : { "content-type": "application/json" };
  return (await send(path, { method, headers: headers({ ...more, ...kind }), ...content })).json();
}

/** A key that nobody else has, so that a request that is sent twice counts once; also where the page is not on loopback. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Load something for a component: `{data, error, reload}`; what was loaded stays while it is loaded again. */
export function useGet(path) {
  const [state, tell] = useState({ data: null, error: null, path: null });
  const [round, again] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    get(path, stop.signal).then(
      (data) => tell({ data, error: null, path }),
      (error) => error.name === "AbortError" || tell((old) => ({ data: old.path === path ? old.data : null, error, path })),
    );
    return () => stop.abort();
  }, [path, round]);
  const current = state.path === path ? state : { data: null, error: null };
  const reload = () => again((number) => number + 1);
  useReturn(() => current.error?.status === 0 && reload());
  return { ...current, reload };
}

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** Follow a run after an event: calls `on(name, data, seq)` for each, in order and once, through lost connections. */
export async function follow(run, after, on, signal) {
  let last = after;
  let wait = 500;
  while (!signal.aborted) {
    try {
      const asked = headers({ accept: "text/event-stream", "last-event-id": String(last) });
      const response = await send(`/api/stream/${encodeURIComponent(run)}`, { headers: asked, signal });
      wait = 500;
      streams.set(streams.get() + 1);
      try {
        for await (const frame of frames(response.body)) {
          if (frame.id !== null) last = frame.id;
          on(frame.event, frame.data, last);
          if (frame.event === "end") return;
        }
      } finally {
        streams.set(streams.get() - 1);
      }
    } catch (error) {
      if (signal.aborted || error.status === 404 || error.status === 401 || error.status === 403) return;
    }
    await pause(wait, signal);
    wait = Math.min(2 * wait, LONGEST_PAUSE);
  }
}

/** Read server-sent events from the body of a response. */
async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const frame = readFrame(part);
      if (frame !== null) yield frame;
    }
  }
}

function readFrame(part) {
  const found = { id: null, event: "message", data: "" };
  for (const line of part.split("\n")) {
    const place = line.indexOf(":");
    if (place <= 0) continue; // a comment
    const value = line.slice(place + 1).trimStart();
    if (line.startsWith("id")) found.id = Number(value);
    else if (line.startsWith("event")) found.event = value;
    else if (line.startsWith("data")) found.data += value;
  }
  return found.data === "" ? null : { ...found, data: JSON.parse(found.data) };
}

/** Follow a run for a component; what arrives is handed over in one go, at most four times a second. */
export function useStream(run, after, on) {
  useEffect(() => {
    if (run === null || after === null) return undefined;
    const stop = new AbortController();
    let waiting = [];
    let timer = null;
    const flush = () => {
      timer = null;
      const updates = waiting;
      waiting = [];
      if (!stop.signal.aborted) on(updates);
    };
    follow(run, after, (name, data, seq) => {
      waiting.push({ name, data, seq });
      timer ??= setTimeout(flush, 250);
    }, stop.signal);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [run, after]);
}
