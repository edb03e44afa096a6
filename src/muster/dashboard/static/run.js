// One run: how it stands, what it costs, what can be done about it, and its parts behind tabs.
import { Boundary, html, into, useEffect, useNow, useRef, useState, useTicks } from "./html.js";
import { get, getText, post, useGet, useReturn, useStream } from "./http.js";
import { duration, elapsed, LIVE, moment, number, titleOf, word } from "./format.js";
import { Action, Ago, Badge, CallsBar, Cost, CostBar, CostOf, Facts, Failure, Later, Outcome, sentence, Stalled, Tabs, Tags, usd, Waiting } from "./parts.js";
import { KINDS, kindOf } from "./kinds.js";
import { CallsTab } from "./calls.js";
import { Json, ModelText } from "./text.js";

const later = (file, name) => () => import(`./${file}.js`).then((module) => module[name]);
const QUESTION = later("question", "Question");
const COMMON = [["calls", "Calls"], ["timeline", "Timeline"], ["events", "Events"]];
const LATER = {
  ...Object.fromEntries(KINDS.filter(({ page }) => page.tab).map(({ page }) => [page.tab, later(...page.view.split("."))])),
  report: later("report", "ReportTab"),
  timeline: later("timeline", "TimelineTab"),
  events: later("events", "EventsTab"),
};
const ACTIONS = Object.fromEntries(KINDS.filter(({ page }) => page.actions).map(({ workload, page }) => [workload, later(...page.actions.split("."))]));
const BESIDE = new Set(KINDS.filter(({ page }) => page.shows_questions).map(({ page }) => page.tab)); // tabs that show what people are asked where it belongs
const RESUMABLE = new Set(["interrupted", "failed", "canceled", "timeout"]);
const ENDED = { budget: "its budget is spent", timeout: "its time is over", manual: "canceled by a person", limit: "its limit is reached", goal: "its goal is reached", error: "an error", step_failed: "a step failed" };
const MOST_TAIL = 500; // events that are kept for the tabs between two looks

function tabsOf(run) {
  const { page, reported } = kindOf(run);
  if (page.tab) return [[page.tab, page.label], ...COMMON];
  if (reported) return [["report", "Report"], ...COMMON];
  return run.result === null ? COMMON : [["result", "Result"], ...COMMON];
}

export function RunView({ id, rest }) {
  const { data: run, error, reload } = useGet(`/api/runs/${encodeURIComponent(id)}`);
  const live = useLive(run?.id ?? null, reload);
  const [failure, tell] = useState(null);
  useEffect(() => {
    if (run) document.title = `${run.name ?? run.id} · Muster`;
    return () => (document.title = "Runs · Muster");
  }, [run?.id]);
  if (!run) return html`<${Waiting} error=${error} what="the run"><p><a href="#/runs">All runs</a></p><//>`;
  const tabs = tabsOf(run);
  const tab = tabs.some(([name]) => name === rest[0]) ? rest[0] : tabs[0][0];
  const asked = (run.questions ?? []).map((one) => html`<${Later} key=${one.key} load=${QUESTION} one=${one} reload=${reload} />`);
  return html`<${Head} run=${run} tell=${tell} reload=${reload} />
    ${failure && html`<${Failure} error=${failure} />`}
    ${LIVE.has(run.state) && html`<${Stalled} batches=${run.batches} />`}
    ${run.error && html`<${RunError} run=${run} />`}
    ${!BESIDE.has(tab) && asked}
    <${Tabs} label="Parts of the run" base=${`#/runs/${run.id}`} tabs=${tabs} value=${tab} />
    <${Boundary} key=${tab} what="This part">
      ${LATER[tab] && html`<${Later} load=${LATER[tab]} run=${run} live=${live}>${asked}<//>`}
      ${tab === "calls" && html`<${CallsTab} run=${run} live=${live} />`}
      ${tab === "result" && html`<section class="card padded"><${Result} value=${run.result} /></section>`}
    <//>`;
}

/** The newest events of a run as they come, and the number of the last one; the run itself is asked for once a second. */
function useLive(id, reload) {
  const [live, tell] = useState({ first: null, last: 0, tail: [] });
  const due = useRef(false);
  const begin = () => {
    if (id === null || live.first !== null) return;
    get(`/api/runs/${id}/events?limit=1`).then((page) => {
      due.current = true; // what happened since the run was asked for is not told by the stream
      tell({ first: page.last_seq, last: page.last_seq, tail: [] });
    }, () => {});
  };
  useEffect(begin, [id]);
  useReturn(begin);
  useStream(id, live.first, (updates) => {
    due.current = true;
    const events = updates.filter((one) => one.name !== "delta" && one.name !== "end" && one.name !== "resync");
    if (events.length) {
      tell((old) => ({ ...old, last: updates.at(-1).seq, tail: [...old.tail, ...events].slice(-MOST_TAIL) }));
    }
  });
  useTicks(1000, () => {
    if (due.current) reload();
    due.current = false;
  }, [id]);
  return live;
}

/** Whether it can be resumed: not again, and a child only with the run above it. */
const resumable = (run) => RESUMABLE.has(run.state) && !run.continued_by && !run.parent;

function Head({ run, tell, reload }) {
  const going = LIVE.has(run.state);
  const now = useNow(going);
  const [budget, choose] = useState("");
  const spent = run.ended_reason === "budget" && resumable(run);
  const resume = async () => {
    if (spent && !(Number(budget) > 0)) throw new Error("Its budget does not cover the next call. Enter a new total in dollars, more than before.");
    const next = await post(`/api/runs/${run.id}/resume`, spent ? { budget_usd: Number(budget) } : {});
    if (next.id === run.id) reload();
    else location.hash = `#/runs/${next.id}`;
  };
  return html`<nav class="crumbs small" aria-label="Where this is"><a href="#/runs">Runs</a>${run.parent && html` / <a href=${`#/runs/${run.parent}`}>${run.parent}</a>`}</nav>
    <section class="card padded run-head">
      <div class="between">
        <h1>${titleOf(run)}</h1>
        <div class="actions">
          ${ACTIONS[run.workload] && html`<${Later} load=${ACTIONS[run.workload]} run=${run} />` /* first: what is there already stays in its place */}
          ${kindOf(run).reported && html`<${Action} label="Download report" act=${() => download(run)} onError=${tell} />`}
          ${resumable(run) && html`<span class="raise">${spent && html`<label class="small" for="new-budget">New total budget in $</label>
            <input id="new-budget" type="number" min="0" step="any" inputmode="decimal" value=${budget} onInput=${into(choose)} />`}<${Action} label="Resume" act=${resume} onError=${tell} /></span>`}
          ${going && html`<${Action} label="Cancel" confirm="Really cancel?" kind="danger" onError=${tell}
            act=${async () => { await post(`/api/runs/${run.id}/cancel`); reload(); }} />`}
        </div>
      </div>
      <p class="under"><${Outcome} run=${run} /> <span class="soft">${run.verdict ? "· " : ""}${run.kind} · ${run.id}</span> <${Tags} names=${run.tags} /></p>
      ${run.name && run.subject && html`<p class="subject">${run.subject}</p>`}
      <${Facts} items=${factsOf(run, now)} />
    </section>`;
}

function factsOf(run, now) {
  const { calls } = run;
  const notes = [[calls.failed, "failed"], [calls.uncertain, "uncertain"], [calls.reused, "reused"], [run.parked, "parked"]].filter(([many]) => many > 0);
  return [
    [kindOf(run).page.calls, html`${number(calls.done)} of ${number(calls.total)}<${CallsBar} calls=${calls} />
      ${notes.length > 0 && html`<span class="soft small">${notes.map(([many, name]) => `${number(many)} ${name}`).join(", ")}</span>`}`],
    [run.budget_usd === null ? "Cost" : "Cost, of budget", html`<${Cost} run=${run} /><${CostBar} run=${run} />`],
    run.lineage.cost_usd > run.cost_usd && ["Cost of this run", html`<${CostOf} of=${{ ...run, budget_usd: null }} /><br /><span class="soft small">a part of a resumed work</span>`],
    ["Started", run.started_at ? html`<${Ago} at=${run.started_at} now=${now} /><br /><span class="soft small">${moment(run.started_at)}</span>` : "not yet"],
    [LIVE.has(run.state) ? "Goes on for" : "Took", duration(elapsed(run.started_at, run.ended_at, now))],
    run.ended_reason && run.ended_reason !== "done" && !LIVE.has(run.state) && ["Ended", ENDED[run.ended_reason] ?? word(run.ended_reason)],
    run.dispatch === "batch" && ["Batches", html`<a href=${run.batches.length === 1 ? `#/batches/${run.batches[0].id}` : "#/batches"}>${number(run.batches.length)}</a>${run.live_usd !== null && html`<span class="soft small"> saved ${usd(run.live_usd - run.batch_usd)}</span>`}`],
    run.flex_live_usd > 0 && ["Tier flex", html`${usd(run.flex_usd)}<span class="soft small"> saved ${usd(run.flex_live_usd - run.flex_usd)}</span>`],
    run.origin && ["Goes back to", html`<a href=${`#/runs/${run.origin.run}`}>${run.origin.run}</a> <span class="soft small">${run.origin.reuse}</span>`],
    run.continued_by && ["Continued as", html`<a href=${`#/runs/${run.continued_by}`}>${run.continued_by}</a>`],
    run.started_by && ["Started by", run.started_by],
  ];
}

function RunError({ run }) {
  const { message, suggestions, ...more } = run.error;
  const spent = run.ended_reason === "budget" && resumable(run);
  const hints = spent ? ["To go on, enter a higher total above and press Resume: what is done is kept.", ...(suggestions ?? [])] : suggestions ?? [];
  return html`<div class="notice bad"><p><strong>${sentence(message ?? "The run failed")}</strong></p>
    ${hints.length > 0 && html`<ul>${hints.map((one) => html`<li key=${one}>${one}</li>`)}</ul>`}
    ${Object.keys(more).length > 1 && html`<details><summary class="small">Details</summary><${Json} value=${more} /></details>`}</div>`;
}

function Result({ value }) {
  return typeof value === "string" ? html`<${ModelText} text=${value} />` : html`<${Json} value=${value} />`;
}

async function download(run) {
  const text = await getText(`/api/runs/${run.id}/report?format=html`);
  const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: `muster-${run.name ?? run.id}.html` });
  link.click();
  URL.revokeObjectURL(url);
}
