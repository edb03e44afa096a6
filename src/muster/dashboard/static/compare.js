// Two runs of a suite, or two agents, pair by pair. The server says what got worse and what got better; this shows it.
import { html, into, useAddressed, useMemo, useSettled, useState } from "./html.js";
import { useGet } from "./http.js";
import { number, percent, score } from "./format.js";
import { Badge, Choice, Command, Empty, Failure, Loading, Panel, Pieces, sentence, Table, Verdict, Waiting } from "./parts.js";
import { Asked } from "./calls.js";
import { differences } from "./difference.js";
import { AgainstPrevious, COMPARED, RunPicker } from "./picker.js";
import { List, usePages } from "./window.js";

const TONES = { better: "ok", same: "ok", "not worse": "ok", worse: "", inconclusive: "pending" };

const FIGURES = [["Agent"], ["Verdict"], ...["Pass rate A", "B", "Difference", "Score A", "B", "Worse", "Better", "Power"].map((name) => [name, "number"])];

/** What the address says: two runs, and the agent that is meant of each, if one is. */
const NAMES = ["a", "of_a", "b", "of_b"];

export function CompareView({ query }) {
  const runs = useGet(`/api/runs?workload=${COMPARED}&limit=1`);
  const asked = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const go = (change) => {
    location.hash = `#/compare?${new URLSearchParams(Object.entries({ ...asked, ...change }).filter(([, value]) => value))}`;
  };
  const known = runs.data?.runs ?? [];
  const { a, of_a: ofA, b, of_b: ofB } = asked;
  const open = a === "" || b === "" ? "Choose two runs of the same suite, or two agents of one run."
    : a === b && (ofA === "" || ofB === "") ? "This is one run. Choose an agent of it on each side." : null;
  return html`<h1>Compare</h1>
    ${runs.error && html`<${Failure} error=${runs.error} />`}
    ${runs.data && known.length === 0 ? html`<section class="card"><${Empty} title="There are no suite runs to compare yet">
        <p>Run a suite twice, before a change and after it, or once with two agents.</p><${Command} text="muster run suite.yaml --agent A --name before" /><//></section>`
      : html`<section class="card padded sides" aria-label="What to compare">
        <${Side} id="a" label="Before (A)" run=${a} agent=${ofA} onChange=${(run, agent) => go({ a: run, of_a: agent })} />
        <button type="button" class="plain swap" onClick=${() => go({ a: b, of_a: ofB, b: a, of_b: ofA })} aria-label="Swap the sides">⇄</button>
        <${Side} id="b" label="After (B)" run=${b} agent=${ofB} onChange=${(run, agent) => go({ b: run, of_b: agent })} />
      </section>`}
    ${known.length > 0 && open && html`<p class="soft">${open}</p>`}
    ${open === null && html`<${Comparison} key=${JSON.stringify(asked)} a=${named(a, ofA)} b=${named(b, ofB)} />`}`;
}

const named = (run, agent) => (agent ? `${run}:${agent}` : run);

/** One side: a run, and one of its agents where it has several. */
function Side({ id, label, run, agent, onChange }) {
  const { data } = useGet(run ? `/api/suites/${run}/subjects` : null);
  const agents = data?.subjects.map((one) => one.subject) ?? [];
  const shown = agent && !agents.includes(agent) ? [agent, ...agents] : agents;
  return html`<div><${RunPicker} id=${id} label=${label} run=${run} onChange=${(chosen) => onChange(chosen, "")} />
    ${shown.length > 1 && html`<label class="hidden" for=${`${id}-agent`}>Agent of ${id.toUpperCase()}</label>
      <select id=${`${id}-agent`} value=${agent} onChange=${(event) => onChange(run, event.target.value)}>
        <option value="">each agent with the same one</option>${shown.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`}
    ${run && html`<span class="small picks"><a href=${`#/runs/${run}`}>Open it</a>${id === "b" && html`<${AgainstPrevious} run=${run} kind="" text="Compare it with the run before it" />`}</span>`}</div>`;
}

function Comparison({ a, b }) {
  const { data, error } = useGet(`/api/compare?${new URLSearchParams({ a, b, changes: 0 })}`);
  if (!data) return html`<${Waiting} error=${error} what="the comparison" />`;
  return html`<${Verdict} kind=${TONES[data.verdict] ?? ""} name=${data.verdict === "inconclusive" ? `inconclusive (gate: ${data.gate})` : data.verdict} text=${sentence(data.why, data.subjects.map((one) => one.subject_a))}>${data.notes.map((note) => html`<p key=${note} class="soft">${note}</p>`)}<//>
    <h2>Figures</h2><${Table} label="Figures" columns=${FIGURES} rows=${data.subjects.map((one) => [
      subjectsOf(one), one.verdict, percent(one.pass_before), percent(one.pass_after), points(one),
      score(one.score_before), score(one.score_after), number(one.counts.regressions), number(one.counts.improvements), power(one.noticing),
    ])} />
    <${Pairs} a=${a} b=${b} several=${data.subjects.length > 1} />`;
}

function subjectsOf({ subject_a: a, subject_b: b }) {
  if (b === null) return `${a}, only in A`;
  return a === b ? a : `${a} → ${b}`;
}

/** How often a drop would be noticed, rounded down; of what is undecided. */
const power = (noticing) => (noticing ? `${Math.floor(100 * noticing.power)} % at −${+(100 * noticing.drop).toFixed(2)} points` : "–");

function points(one) {
  if (one.pass_difference === null) return "–";
  const signed = (value) => `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)}`;
  const { low, high } = one.pass_interval ?? {};
  return html`${signed(one.pass_difference)} points${low === undefined ? "" : html` <span class="soft small">${signed(low)} to ${signed(high)}</span>`}`;
}

const CHANGES = { worse: "Worse", better: "Better", new: "Only in B", same: "Same result" };
const BADGES = { worse: "failed", better: "passed", new: "waiting", same: "skipped" };
const keyOf = (pair) => JSON.stringify([pair.subject_a, pair.case, pair.epoch]);

/** Every epoch of every case of both sides, what got worse first; loaded as one scrolls. */
function Pairs({ a, b, several }) {
  const [change, choose] = useAddressed("change", "all");
  const [typed, type] = useAddressed("search");
  const [chosen, open] = useState(null);
  const search = useSettled(typed.trim());
  const path = `/api/compare/pairs?${new URLSearchParams(Object.entries({ a, b, search, limit: 200, change: change === "all" ? "" : change }).filter(([, value]) => value))}`;
  const pages = usePages(path, "pairs", [change, search]);
  const counts = pages.page?.counts ?? {};
  const all = Object.values(counts).reduce((sum, many) => sum + many, 0);
  const options = [["all", "All", all], ...Object.keys(CHANGES).filter((name) => counts[name] || name === change).map((name) => [name, CHANGES[name], counts[name]])];
  const side = (status, points) => (status === null ? html`<span class="soft">missing</span>` : html`<${Badge} state=${status} /> <span class="soft small">${score(points)}</span>`);
  const cells = (one) => [
    html`<span class="title">${one.case}</span><span class="under soft">${several ? `${one.subject_a} ` : ""}${one.epoch > 1 ? `epoch ${one.epoch} ` : ""}${one.same_answer === false && one.change === "same" ? "another answer" : ""}</span>`,
    html`<span title=${one.reason}><${Badge} state=${BADGES[one.change]} text=${CHANGES[one.change]} /></span>`, side(one.before, one.before_score), side(one.after, one.after_score),
  ];
  return html`<h2>Pairs</h2><section class="card" aria-label="Pairs">
    <div class="filters">
      <input aria-label="Search cases" type="search" placeholder="Search cases" value=${typed} onInput=${into(type)} />
      <${Choice} label="Change" value=${change} onChange=${choose} options=${options} /></div>
    <${List} pages=${pages} what="pairs" none=${html`<${Empty} title="No pair fits these filters" />`} total=${change === "all" ? all : counts[change] ?? 0} label="Pairs" kind="pair-rows"
      columns=${[["Case", "name"], ["Change", "state"], ["A", "side"], ["B", "side"]]} cells=${cells} heights=${[56, 84]} keyOf=${keyOf} onOpen=${open} />
    ${chosen && html`<${PairPanel} pair=${chosen} runs=${[pages.page.a.run, pages.page.b.run]} onClose=${() => open(null)} />`}
  </section>`;
}

const caseOf = (run, name, subject) => `/api/suites/${run}/case?${new URLSearchParams({ case: name, subject })}`;

/** Both answers, with what differs marked. */
function PairPanel({ pair, runs, onClose }) {
  const before = useGet(pair.before === null ? null : caseOf(runs[0], pair.case, pair.subject_a));
  const after = useGet(pair.after === null ? null : caseOf(runs[1], pair.case, pair.subject_b));
  const epochOf = (found) => found.data?.epochs.find((one) => one.epoch === pair.epoch) ?? null;
  const [one, other] = [epochOf(before), epochOf(after)];
  const found = useMemo(() => differences(one?.answer ?? "", other?.answer ?? ""), [one, other]);
  const error = before.error ?? after.error;
  const ready = (pair.before === null || one) && (pair.after === null || other);
  const [run, shown] = one ? [runs[0], one] : [runs[1], other];
  const call = useGet(shown?.keys.length ? `/api/runs/${run}/call?key=${encodeURIComponent(shown.keys.at(-1))}` : null);
  const who = pair.subject_a === pair.subject_b ? pair.subject_a : `${pair.subject_a} → ${pair.subject_b}`;
  return html`<${Panel} title=${pair.case} onClose=${onClose} head=${html`<p class="under"><${Badge} state=${BADGES[pair.change]} text=${CHANGES[pair.change]} /> <span class="soft">${who}, epoch ${pair.epoch}: ${pair.reason}</span></p>`}>
    ${error && html`<${Failure} error=${error} />`}
    ${!ready && !error && html`<${Loading} what="both answers" />`}
    ${call.data && html`<${Asked} call=${call.data} />`}
    ${ready && html`<div class="pair">
        <${Answer} name="A" one=${one} pieces=${found.before} />
        <${Answer} name="B" one=${other} pieces=${found.after} />
      </div>
      ${one && other && html`<p class="soft small">${one.answer === other.answer ? "Both answers are the same." : html`<del>only in A</del> <ins>only in B</ins>`}</p>`}`}
  <//>`;
}

function Answer({ name, one, pieces }) {
  return html`<section class="box" aria-label=${`Answer ${name}`}><div class="between"><h3>${name}</h3>${one && html`<span><${Badge} state=${one.status} /> ${score(one.score)}</span>`}</div>
    ${one ? html`<${Pieces} pieces=${pieces} />` : html`<p class="soft">This side does not have it.</p>`}
    ${one?.why && html`<p class="soft small">${one.why}</p>`}</section>`;
}
