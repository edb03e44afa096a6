// All runs, the newest first: what goes on, what it came to, and what it cost.
import { html, into, useAddressed, useNow, useSettled, useTicks } from "./html.js";
import { duration, elapsed, LIVE, number, titleOf } from "./format.js";
import { Ago, CallsBar, Choice, Command, Cost, CostBar, Empty, Outcome, Tags } from "./parts.js";
import { List, usePages } from "./window.js";

const FILTERS = {
  all: ["All", []],
  live: ["In progress", [...LIVE]],
  completed: ["Completed", ["completed"]],
  failed: ["Failed", ["failed", "timeout"]],
  canceled: ["Canceled", ["canceled"]],
};
const WORKLOADS = [
  ["", "all kinds of work"], ["suite", "suites"], ["battle", "battles"], ["scale", "scale tests"], ["task", "tasks"], ["chain", "chains"],
  ["deliberation", "councils"], ["waves", "verifications"], ["ask", "questions"],
];

function pathOf(filter, workload, search) {
  const asked = new URLSearchParams({ limit: "100" });
  for (const state of FILTERS[filter][1]) asked.append("state", state);
  if (workload) asked.set("workload", workload);
  if (search) asked.set("search", search);
  return `/api/runs?${asked}`;
}

export function RunsView() {
  const [filter, choose] = useAddressed("state", "all");
  const [workload, kind] = useAddressed("workload");
  const [typed, type] = useAddressed("search");
  const search = useSettled(typed.trim());
  const known = FILTERS[filter] ? filter : "all";
  const pages = usePages(pathOf(known, workload, search), "runs", [known, workload, search]);
  const going = pages.items.some((run) => LIVE.has(run.state));
  useTicks(going ? 1500 : 4000, () => pages.refresh((run) => run.id), [known, workload, search, going]);
  const filtered = known !== "all" || workload || search;
  return html`<h1>Runs</h1>
    <section class="card" aria-label="Runs">
      <div class="filters">
      <input aria-label="Search runs" type="search" placeholder="Search id, name, kind or tag" value=${typed} onInput=${into(type)} />
      <select aria-label="Kind of work" value=${workload} onChange=${into(kind)}>
          ${WORKLOADS.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}
        </select>
        <${Choice} label="State" value=${known} onChange=${choose} options=${Object.entries(FILTERS).map(([name, [text]]) => [name, text])} />
      </div>
      <${RunRows} pages=${pages} going=${going} none=${filtered ? html`<${Empty} title="No run fits these filters"><p>
        <button type="button" class="plain" onClick=${() => { choose("all"); kind(""); type(""); }}>Show all runs</button></p><//>` : html`<${FirstSteps} />`} />
    </section>`;
}

const COLUMNS = [["Run", "name"], ["Result", "state"], ["Calls", "calls"], ["Cost", "cost"], ["Started", "when"], ["Took", "took number"]];

/** Why a run stands still in a batch that does not get on. */
function waits(run) {
  const batch = LIVE.has(run.state) && run.batches.find((one) => one.stalled);
  return batch && html` · <span class="bad" title=${[batch.why, ...batch.next].join("\n")}>waits for batch ${batch.id}: ${batch.why}</span>`;
}

function RunRows({ going, ...list }) {
  const now = useNow(going);
  const cells = (run) => [
    html`<span class="title">${titleOf(run)}</span><span class="under soft">${run.kind} · ${run.id} <${Tags} names=${run.tags} /> ${run.name && run.subject}${run.continued_by && ` · continued as ${run.continued_by}`}${waits(run)}</span>`,
    html`<${Outcome} run=${run} />`,
    html`<span class="count">${number(run.calls.done)}<span class="soft"> of ${number(run.calls.total)}</span>${run.calls.failed > 0 && html`<span class="bad"> · ${number(run.calls.failed)} failed</span>`}</span><${CallsBar} calls=${run.calls} />`,
    html`<${Cost} run=${run} /><${CostBar} run=${run} />`,
    html`<${Ago} at=${run.started_at ?? run.created_at} now=${now} />`,
    duration(elapsed(run.started_at, run.ended_at, now)),
  ];
  return html`<${List} what="runs" label="Runs" kind="run-rows" columns=${COLUMNS} cells=${cells} heights=${[60, 112]} keyOf=${(run) => run.id} href=${(run) => `#/runs/${run.id}`} ...${list} />`;
}

function FirstSteps() {
  return html`<${Empty} title="Nothing has been run yet">
    <p>A run is one piece of work: a suite, a battle, a task, a question. Start one <a href="#/start">here</a>, or in a terminal:</p>
    <${Command} text='muster ask sim/echo "hello"' />
    <p class="soft">It needs no key. This list shows it as soon as it begins.</p>
  <//>`;
}
