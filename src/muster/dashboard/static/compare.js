// Two runs of a suite, pair by pair: what got worse, what got better, and what differs in the answers.
import { html, useMemo, useNarrow, useState } from "./html.js";
import { useGet } from "./http.js";
import { number, percent, score } from "./format.js";
import { Badge, Choice, Command, Empty, Failure, Loading, Panel, Pieces, sentence, Table, Verdict } from "./parts.js";
import { differences } from "./difference.js";
import { Rows } from "./window.js";

const TONES = { better: "ok", same: "ok", "not worse": "ok", worse: "", "not enough evidence": "pending" };

const FIGURES = [["Subject"], ["Verdict"], ...["Pass rate A", "B", "Difference", "Score A", "B", "Worse", "Better"].map((name) => [name, "number"])];

export function CompareView({ query }) {
  const runs = useGet("/api/runs?workload=suite&limit=200");
  const a = query.get("a") ?? "";
  const b = query.get("b") ?? "";
  const go = (sides) => {
    location.hash = `#/compare?${new URLSearchParams(Object.entries({ a, b, ...sides }).filter(([, value]) => value))}`;
  };
  const known = runs.data?.runs ?? [];
  return html`<h1>Compare</h1>
    ${runs.error && html`<${Failure} error=${runs.error} />`}
    ${runs.data && known.length < 2 ? html`<section class="card"><${Empty} title="There are no two suite runs to compare yet">
        <p>Run a suite twice: before a change and after it.</p><${Command} text="muster run suite.yaml --agent A --name before" /><//></section>`
      : html`<section class="card padded sides" aria-label="Runs to compare">
        <${Side} id="a" label="Before (A)" value=${a} runs=${known} onChange=${(value) => go({ a: value })} />
        <button type="button" class="plain swap" onClick=${() => go({ a: b, b: a })} aria-label="Swap the sides">⇄</button>
        <${Side} id="b" label="After (B)" value=${b} runs=${known} onChange=${(value) => go({ b: value })} />
      </section>`}
    ${a && b && html`<${Comparison} key=${`${a} ${b}`} a=${a} b=${b} />`}
    ${(!a || !b) && known.length > 1 && html`<p class="soft">Choose two runs of the same suite.</p>`}`;
}

function Side({ id, label, value, runs, onChange }) {
  const listed = runs.some((run) => run.id === value) || value === "";
  return html`<div><label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>
      <option value="">choose a run</option>${!listed && html`<option value=${value}>${value}</option>`}
      ${runs.map((run) => html`<option key=${run.id} value=${run.id}>${run.name ?? run.id} · ${run.state} · ${new Date(run.created_at).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" })}</option>`)}
    </select>
    ${value && html`<a class="small" href=${`#/runs/${value}`}>Open it</a>`}</div>`;
}

function Comparison({ a, b }) {
  const found = useGet(`/api/compare?${new URLSearchParams({ a, b })}`);
  const before = useGet(`/api/runs/${a}/report?format=json`);
  const after = useGet(`/api/runs/${b}/report?format=json`);
  const error = found.error ?? before.error ?? after.error;
  if (error) return html`<${Failure} error=${error} />`;
  if (!found.data || !before.data || !after.data) return html`<${Loading} what="the comparison" />`;
  const { data } = found;
  return html`<${Verdict} kind=${TONES[data.verdict] ?? ""} name=${data.verdict} text=${sentence(data.why)}>${data.notes.map((note) => html`<p key=${note} class="soft">${note}</p>`)}<//>
    <h2>Figures</h2><${Table} label="Figures" columns=${FIGURES} rows=${data.subjects.map((one) => [
      subjectsOf(one), one.verdict, percent(one.pass_before), percent(one.pass_after), points(one),
      score(one.score_before), score(one.score_after), number(one.regressions.length), number(one.improvements.length),
    ])} />
    <${Pairs} comparison=${data} before=${before.data} after=${after.data} />`;
}

function subjectsOf({ subject_a: a, subject_b: b }) {
  if (a === null || b === null) return `${a ?? b}, only in ${a === null ? "B" : "A"}`;
  return a === b ? a : `${a} → ${b}`;
}

function points(one) {
  if (one.pass_difference === null) return "–";
  const signed = (value) => `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)}`;
  const [low, high] = Array.isArray(one.pass_interval) ? one.pass_interval : [one.pass_interval?.low, one.pass_interval?.high];
  return html`${signed(one.pass_difference)} points${low === undefined ? "" : html` <span class="soft small">${signed(low)} to ${signed(high)}</span>`}`;
}

/** Every epoch of every case that either run has, with how it ended on both sides. */
function pairsOf(comparison, before, after) {
  const rows = new Map();
  const add = (side, report, subjectOf) => {
    for (const row of report.cases) {
      const subject = subjectOf(row.subject);
      if (subject === undefined) continue;
      for (const epoch of row.epochs) {
        const key = `${row.case}\n${subject}\n${epoch.epoch}`;
        rows.set(key, { key, case: row.case, subject, epoch: epoch.epoch, ...(rows.get(key) ?? {}), [side]: epoch });
      }
    }
  };
  const renamed = new Map(comparison.subjects.map((one) => [one.subject_b, one.subject_a]));
  const known = new Set(comparison.subjects.map((one) => one.subject_a));
  add("a", before, (name) => (known.has(name) ? name : undefined));
  add("b", after, (name) => renamed.get(name));
  return [...rows.values()].map((pair) => ({ ...pair, change: changeOf(pair) })).sort((x, y) => ORDER.indexOf(x.change) - ORDER.indexOf(y.change));
}

const ORDER = ["worse", "better", "missing", "changed", "same"];
const CHANGES = { worse: "Worse", better: "Better", missing: "Only in one", changed: "Other answer", same: "The same" };
const BADGES = { worse: "failed", better: "passed", missing: "unjudged", changed: "waiting", same: "skipped" };

function changeOf({ a, b }) {
  if (!a || !b) return "missing";
  if ((a.status === "passed") !== (b.status === "passed")) return a.status === "passed" ? "worse" : "better";
  return a.answer === b.answer ? "same" : "changed";
}

function Pairs({ comparison, before, after }) {
  const pairs = useMemo(() => pairsOf(comparison, before, after), [comparison, before, after]);
  const [change, choose] = useState("all");
  const [chosen, open] = useState(null);
  const narrow = useNarrow();
  const items = change === "all" ? pairs : pairs.filter((one) => one.change === change);
  const many = (name) => pairs.filter((one) => one.change === name).length;
  const several = new Set(pairs.map((one) => one.subject)).size > 1;
  const side = (one) => (one ? html`<${Badge} state=${one.status} /> <span class="soft small">${score(one.score)}</span>` : html`<span class="soft">–</span>`);
  const cells = (one) => [
    html`<span class="title">${one.case}</span><span class="under soft">${several ? one.subject : ""}${one.epoch > 1 ? ` epoch ${one.epoch}` : ""}</span>`,
    html`<${Badge} state=${BADGES[one.change]} text=${CHANGES[one.change]} />`, side(one.a), side(one.b),
  ];
  return html`<h2>Pairs</h2><section class="card" aria-label="Pairs">
    <div class="filters"><${Choice} label="Change" value=${change} onChange=${choose} options=${[["all", "All", pairs.length], ...ORDER.filter(many).map((name) => [name, CHANGES[name], many(name)])]} /></div>
    <${Rows} label="Pairs" kind="pair-rows" items=${items} columns=${[["Case", "name"], ["Change", "state"], ["A", "side"], ["B", "side"]]} cells=${cells} height=${narrow ? 76 : several ? 60 : 44} keyOf=${(one) => one.key} onOpen=${open} />
    <p class="foot soft small">${number(items.length)} of ${number(pairs.length)} pairs</p>
    ${chosen && html`<${PairPanel} pair=${chosen} onClose=${() => open(null)} />`}
  </section>`;
}

function PairPanel({ pair, onClose }) {
  const found = useMemo(() => differences(pair.a?.answer ?? "", pair.b?.answer ?? ""), [pair]);
  return html`<${Panel} title=${pair.case} onClose=${onClose} head=${html`<p class="under"><${Badge} state=${BADGES[pair.change]} text=${CHANGES[pair.change]} /> <span class="soft">${pair.subject}, epoch ${pair.epoch}</span></p>`}>
    <div class="pair">
      <${Answer} name="A" one=${pair.a} pieces=${found.before} />
      <${Answer} name="B" one=${pair.b} pieces=${found.after} />
    </div>
    <p class="soft small"><del>taken out</del> <ins>put in</ins></p>
  <//>`;
}

function Answer({ name, one, pieces }) {
  return html`<section class="box" aria-label=${`Answer ${name}`}><div class="between"><h3>${name}</h3>${one && html`<span><${Badge} state=${one.status} /> ${score(one.score)}</span>`}</div>
    ${one ? html`<${Pieces} pieces=${pieces} />` : html`<p class="soft">This run does not have it.</p>`}
    ${one?.why && html`<p class="soft small">${one.why}</p>`}</section>`;
}
