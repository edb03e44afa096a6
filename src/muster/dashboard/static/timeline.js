// The waterfall, in lanes by agent: when each call waited, was on the wire, lay in a batch, failed and was tried again.
import { html, useAddressed, useEffect, useMemo, useNow, useRef, useState } from "./html.js";
import { at, count, duration, elapsed, LIVE, number, percent } from "./format.js";
import { CallKey, CallPanel, isOpen } from "./calls.js";
import { useKeys } from "./keys.js";
import { Choice, Empty, Failure, Loading } from "./parts.js";
import { Rows, usePages } from "./window.js";

const KINDS = [["waiting", "waiting for a place, money or the next try"], ["wire", "on the wire"], ["parked", "parked in a batch"], ["failed", "failed, then tried again or given up"], ["uncertain", "outcome unknown"]];
const OF_STATE = { started: "wire", succeeded: "wire", parked: "parked", uncertain: "uncertain" };

const MOST_OF_LANES = 1000; // calls that are loaded by themselves where lanes hide them

export function TimelineTab({ run, live }) {
  const pages = usePages(`/api/runs/${run.id}/attempts?limit=100`, "calls", [run.id]);
  const [order, sort] = useAddressed("lanes", "agents");
  const [closed, close] = useState(new Set());
  const [chosen, open] = useState(null);
  const [view, zoom] = useState([0, 1]); // the part of the whole time that is seen
  const going = LIVE.has(run.state);
  const now = useNow(going);
  useEffect(() => {
    if (pages.loaded && (live.tail.length > 0 || going)) pages.again(isOpen, (call) => call.key);
  }, [run.calls.done, run.calls.failed, run.calls.total, run.state]);
  const rows = useMemo(() => pages.items.map((call) => ({ call, parts: partsOf(call) })), [pages.items]);
  const agents = useMemo(() => [...new Set(rows.map((row) => row.call.agent))].sort(), [rows]);
  const laned = order === "agents" && agents.length > 1;
  const items = useMemo(() => (laned ? agents.flatMap((agent) => lane(agent, rows, closed)) : rows), [rows, laned, closed]);
  const span = useRef([0, 1]); // of the whole run, in milliseconds
  const closer = () => zoom(zoomed(busiest(rows, span.current, view), 0.5));
  useKeys({ "+": closer, "-": () => zoom(zoomed(view, 2)), 0: () => zoom([0, 1]) });
  if (pages.error) return html`<${Failure} error=${pages.error} />`;
  if (!pages.loaded) return html`<${Loading} what="the timeline" />`;
  const timed = rows.flatMap((row) => row.parts);
  if (timed.length === 0) return html`<div class="card"><${Empty} title="Nothing was sent yet"><p class="soft">A line will stand here for each call, from its first wait to its answer.</p><//></div>`;
  const first = timed.reduce((least, part) => Math.min(least, part.from), at(run.started_at) ?? Infinity); // of the whole run, also where not all calls are loaded
  const last = timed.reduce((most, part) => Math.max(most, part.to ?? now), going ? now : at(run.ended_at) ?? first + 1);
  span.current = [first, last];
  const [begin, end] = view.map((share) => first + share * (last - first));
  const took = (parts) => duration(parts.length ? ((parts.at(-1).to ?? now) - parts[0].from) / 1000 : null);
  const many = (calls) => (rows.length < run.calls.total ? `${count(calls, "call")} drawn so far` : count(calls, "call"));
  const cells = ({ call, agent, calls, parts }) => [
    agent === undefined ? html`<${CallKey} text=${call.key} />` : html`<span class="title"><span class="turn" aria-hidden="true">${closed.has(agent) ? "▸" : "▾"}</span> ${agent} <span class="soft small">${many(calls)}</span></span>`,
    html`<${Track} parts=${parts} begin=${begin} end=${end} now=${now} told=${agent && `${many(calls)} of ${agent}`} />`,
    agent === undefined ? took(parts) : "",
  ];
  const press = (row) => (row.agent === undefined ? open(row.call.key) : close((old) => new Set(old.has(row.agent) ? [...old].filter((one) => one !== row.agent) : [...old, row.agent])));
  const held = laned && rows.length >= MOST_OF_LANES;
  return html`<section class="card" aria-label="Timeline">
    <div class="filters">
      ${agents.length > 1 && html`<${Choice} label="Order" value=${order} onChange=${sort} options=${[["agents", "Lanes by agent"], ["calls", "In order of calls"]]} />`}
      <${Zoom} view=${view} zoom=${zoom} closer=${closer} seconds=${(last - first) / 1000} />
    </div>
    <ul class="legend">${KINDS.map(([name, text]) => html`<li key=${name}><span class=${`swatch t-${name}`}></span>${text}</li>`)}</ul>
    <${Axis} seconds=${[(begin - first) / 1000, (end - first) / 1000]} onChoose=${(from, to) => zoom(within(view[0] + from * (view[1] - view[0]), view[0] + to * (view[1] - view[0])))} />
    <${Rows} label="Timeline" kind="time-rows" items=${items} columns=${[["Call", "name"], [`from ${duration((begin - first) / 1000)} to ${duration((end - first) / 1000)}`, "track-cell"], ["Took", "number took"]]}
      cells=${cells} heights=${[30, 52]} total=${run.calls.total} keyOf=${(row) => (row.agent === undefined ? row.call.key : `lane ${row.agent}`)} markOf=${(row) => (row.agent === undefined ? "" : "lane")} onOpen=${press} onEnd=${held ? undefined : pages.more} />
    <p class="foot soft small">${number(rows.length)} of ${number(run.calls.total)} calls are drawn${pages.next && !held ? "; scroll for more" : ""}. ${run.calls.reused > 0 ? "Calls that were reused took no time." : ""}
      ${held && pages.next && html`<button type="button" class="plain small" onClick=${pages.more}>Load more</button>`}</p>
    ${chosen !== null && html`<${CallPanel} run=${run.id} callKey=${chosen} onClose=${() => open(null)} />`}
  </section>`;
}

/** The rows of a lane: all calls of an agent on one line, and each below it unless the lane is closed. */
function lane(agent, rows, closed) {
  const own = rows.filter((row) => row.call.agent === agent);
  const sent = own.flatMap((row) => row.parts.filter((part) => part.kind !== "waiting"));
  return [{ agent, calls: own.length, parts: sent }, ...(closed.has(agent) ? [] : own)];
}

const LEAST_VIEW = 1e-5;

/** A part of the time from 0 to 1, of some length at least. */
function within(from, to) {
  const length = Math.min(1, Math.max(LEAST_VIEW, to - from));
  const begin = Math.min(1 - length, Math.max(0, (from + to - length) / 2));
  return [begin, begin + length];
}

/** The view made longer or shorter around its middle, and moved by a part of its length. */
function zoomed([from, to], factor, by = 0) {
  const [middle, half] = [(from + to) / 2 + by * (to - from), (factor * (to - from)) / 2];
  if (by === 0) return within(middle - half, middle + half);
  const begin = Math.min(1 - 2 * half, Math.max(0, middle - half));
  return [begin, begin + 2 * half];
}

/** The view moved to the middle of the calls within it, so that one does not look closer at nothing. */
function busiest(rows, [first, last], [from, to]) {
  const middles = rows.flatMap((row) => row.parts).map((part) => ((part.from + (part.to ?? last)) / 2 - first) / (last - first)).filter((share) => share >= from && share <= to);
  const by = middles.length ? middles.reduce((sum, one) => sum + one, 0) / middles.length - (from + to) / 2 : 0;
  return [from + by, to + by];
}

function Zoom({ view, zoom, closer, seconds }) {
  const whole = view[1] - view[0] > 0.9999;
  const button = (sign, label, next, off) => html`<button type="button" class="plain small" aria-label=${label} title=${label} disabled=${off} onClick=${typeof next === "function" ? next : () => zoom(next)}>${sign}</button>`;
  return html`<div class="zoom" role="group" aria-label="Zoom">
    ${button("←", "Earlier", zoomed(view, 1, -0.5), view[0] <= 0)}${button("→", "Later", zoomed(view, 1, 0.5), view[1] >= 1)}
    ${button("+", "Zoom in", closer, view[1] - view[0] <= LEAST_VIEW)}${button("−", "Zoom out", zoomed(view, 2), whole)}${button("All", "All of the time", [0, 1], whole)}
    <span class="soft small">${whole ? "drag over the axis to look closer" : `${duration((view[1] - view[0]) * seconds)} of ${duration(seconds)}`}</span></div>`;
}

const TICKS = 4;

/** The axis of time, since the run began; whoever drags over it chooses what is seen. */
function Axis({ seconds: [from, to], onChoose }) {
  const [drag, tell] = useState(null);
  const share = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const end = (event) => {
    const found = drag && [Math.min(drag[0], share(event)), Math.max(drag[0], share(event))];
    tell(null);
    if (found && found[1] - found[0] > 0.01) onChoose(...found);
  };
  return html`<div class="time-axis"><span class="soft small">time since it began</span><div class="ticks" onPointerDown=${(event) => { event.currentTarget.setPointerCapture(event.pointerId); tell([share(event), share(event)]); }}
      onPointerMove=${(event) => drag && tell([drag[0], share(event)])} onPointerUp=${end} onPointerCancel=${() => tell(null)}>
    ${[...Array(TICKS + 1).keys()].map((place) => html`<span key=${place} class="tick" style=${{ left: percent(place / TICKS, 2) }}>${duration(from + ((to - from) * place) / TICKS)}</span>`)}
    ${drag && html`<span class="drag" style=${{ left: percent(Math.min(...drag), 2), width: percent(Math.abs(drag[1] - drag[0]), 2) }}></span>`}</div><span></span></div>`;
}

/** The stretches of a call: `{kind, from, to, told}`, in order; `to` is null while it goes on. */
export function partsOf(call) {
  const parts = [];
  if (call.reused_from || call.attempt_list.length === 0) return parts;
  let last = at(call.attempt_list[0].started_at) - (call.attempt_list.length === 1 ? 1000 * (call.waited_seconds ?? 0) : 0);
  for (const one of call.attempt_list) {
    const from = at(one.started_at);
    const to = at(one.ended_at);
    if (from - last > 1 && !one.batch) parts.push({ kind: "waiting", from: last, to: from, told: `waited ${duration((from - last) / 1000)}` });
    const kind = one.batch ? "parked" : OF_STATE[one.state] ?? "failed";
    parts.push({ kind: one.batch && one.state === "uncertain" ? "uncertain" : kind, from, to, told: `attempt ${one.n}: ${one.state}, ${duration(to === null ? null : elapsed(one.started_at, one.ended_at))}` });
    last = to ?? from;
  }
  return parts;
}

function Track({ parts, begin, end, now, told: given }) {
  const place = (time) => percent((time - begin) / (end - begin), 3);
  const seen = parts.filter((part) => (part.to ?? now) >= begin && part.from <= end);
  const told = given ?? parts.map((part) => part.told).join("; ");
  return html`<span class="track" role="img" aria-label=${told || "no attempt"}>
    ${seen.map((part, number) => html`<span key=${number} class=${`span t-${part.kind}${part.to === null ? " open-end" : ""}`} title=${part.told}
      style=${{ left: place(part.from), width: `max(2px, ${percent(((part.to ?? now) - part.from) / (end - begin), 3)})` }}></span>`)}
  </span>`;
}
