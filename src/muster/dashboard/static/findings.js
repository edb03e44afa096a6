// A verification: what was found, file by file beside the code as it was verified; who looked, and what it came to.
import { html, useAddressed, useChange, useState } from "./html.js";
import { useGet } from "./http.js";
import { count, duration, LIVE, number, percent, word } from "./format.js";
import { Badge, Choice, Empty, Facts, Failure, Loading, Table, usd, Verdict, Waiting } from "./parts.js";
import { CallPanel } from "./calls.js";
import { ModelText } from "./text.js";
import { usePages } from "./window.js";

const SEVERITIES = ["critical", "high", "medium", "low"];
const ENDINGS = { passed: "passed", failed: "failed", broken: "error", idle: "skipped" };
const MOST_KEYS = 50; // calls of an agent that are listed
const COLUMNS = [["Agent"], ["Ended"], ["Findings", "number"], ["Thresholds"], ["Parts seen", "number"], ["Took", "number"], ["Cost", "number"], ["Calls"]];

export function FindingsTab({ run, live }) {
  const { data: found, error, reload } = useGet(`/api/verify/${run.id}/status`);
  const [severity, choose] = useAddressed("severity", "all");
  const going = LIVE.has(run.state);
  useChange([live.last, run.state], reload);
  if (!found && error?.status === 404) {
    return html`<section class="card"><${Empty} title=${going ? "The files are being read" : "It ended before its files were read"}><p class="soft">What is found is shown here after each wave.</p><//></section>`;
  }
  if (!found) return html`<${Waiting} error=${error} what="the verification" />`;
  const { counts } = found;
  const options = [...SEVERITIES, "rejected"].filter((one) => counts[one] > 0).map((one) => [one, one, counts[one]]);
  return html`<${Outcome} found=${found} going=${going} />
    ${found.waves.length > 0 && html`<h2>How it was checked</h2>`}
    ${found.waves.map((wave) => html`<${Wave} key=${wave.wave} wave=${wave} run=${run} />`)}
    <div class="between"><h2>Findings by file</h2>${options.length > 0 && html`<${Choice} label="Severity" value=${severity} onChange=${choose} options=${[["all", "all", counts.total], ...options]} />`}</div>
    ${severity === "rejected" && html`<p class="soft">These cannot be: their file or line was not shown, or does not exist. They do not count.</p>`}
    <${Found} key=${severity} ...${{ run, severity, found, going }} />`;
}

function Outcome({ found, going }) {
  const { counts, cost, files } = found;
  return html`<${Verdict} kind=${going ? "pending" : found.ok ? "ok" : ""} name=${going ? word(found.run.state) : found.ok ? "passed" : "not passed"} text=${found.verdict}>
    ${found.notes.map((note) => html`<p class="soft">${note}</p>`)}
    <${Facts} items=${[
      ["Files verified", `${number(files.length - found.unseen.length)} of ${number(files.length)}`],
      ["Findings", html`${number(counts.total)} <span class="soft small">${SEVERITIES.filter((one) => counts[one] > 0).map((one) => `${number(counts[one])} ${one}`).join(", ")}</span>`],
      ["Waves", `${number(found.waves.length)} of ${number(found.waves.length + found.not_started.length)}`],
      ["Cost", html`${usd(cost.cost_usd)} ${cost.live_usd > cost.cost_usd && html`<span class="soft small">instead of ${usd(cost.live_usd)} live</span>`}`],
      found.redactions > 0 && ["Secrets taken out", number(found.redactions)],
    ]} />
    ${found.left_out.length > 0 && html`<details><summary class="small">${count(found.left_out.length, "file")} left out</summary><ul>${found.left_out.slice(0, 200).map((one) => html`<li class="small"><code>${one.path}</code>: ${one.why}</li>`)}</ul></details>`}
  <//>`;
}

/** Who looked in a wave, how, and what came of it. */
function Wave({ wave, run }) {
  const [call, open] = useState(null);
  const row = (one) => [
    html`${one.agent}<div class="soft small">${lookerOf(one)}</div>`,
    html`<${Badge} state=${ENDINGS[one.ending]} text=${one.ending} /><div class="soft small">${one.why}</div>`,
    html`${number(one.counts.total)}${one.counts.rejected > 0 && html`<div class="soft small">${number(one.counts.rejected)} rejected</div>`}`,
    html`${one.thresholds.map((each) => html`<div class=${`small ${each.holds ? "" : "bad"}`} title=${each.why}>${each.holds ? "✓" : "✗"} <code>${each.expression}</code></div>`)}
      <div class="soft small">${[one.score !== null && `score ${one.score.toFixed(1)}`, one.coverage !== null && `coverage ${one.coverage.toFixed(0)}%`].filter(Boolean).join(", ")}</div>`,
    `${number(one.answered)} of ${number(one.chunks)}`, duration(one.seconds), usd(one.cost_usd),
    one.keys.length > 0 && html`<details class="small"><summary>${count(one.keys.length, "call")}<span class="hidden"> of ${one.agent}</span></summary>
      ${one.keys.slice(0, MOST_KEYS).map((key) => html`<button type="button" class="switch mono" onClick=${() => open(key)}>${key}</button> `)}
      ${one.keys.length > MOST_KEYS && html`<a href=${`#/runs/${run.id}/calls`}>all</a>`}</details>`,
  ];
  return html`<h3 class="wave">Wave ${wave.wave} <${Badge} state=${wave.passed ? "passed" : "failed"} /> <span class="soft small">${duration(wave.seconds)} ${wave.agents.some((one) => one.why) ? "" : wave.why}</span></h3>
    <${Table} label=${`Wave ${wave.wave}`} columns=${COLUMNS} rows=${wave.agents.map(row)} />
    ${call !== null && html`<${CallPanel} run=${run.id} callKey=${call} onClose=${() => open(null)} />`}`;
}

const lookerOf = (agent) => (agent.kind !== "model" ? "command" : agent.model ?? "model");

function Found({ run, severity, found, going }) {
  const query = severity === "rejected" ? "&rejected=true" : severity === "all" ? "" : `&severity=${severity}`;
  const pages = usePages(`/api/verify/${run.id}/findings?limit=50${query}`, "findings", [found.waves.length]);
  if (pages.error) return html`<${Failure} error=${pages.error} />`;
  if (!pages.loaded) return html`<${Loading} what="findings" />`;
  if (pages.items.length === 0) return html`<section class="card"><${Empty} title=${going ? "Nothing has been found yet" : "Nothing was found"} /></section>`;
  const lookers = new Map(found.waves.flatMap((wave) => wave.agents.map((one) => [one.agent, lookerOf(one)])));
  return html`${byFile(pages.items).map(([file, items]) => html`<section class="card found" key=${file} aria-label=${file}>
      <h3 class="mono">${file}</h3>${items.map((one, place) => html`<${Finding} key=${place} one=${one} lookers=${lookers} />`)}
    </section>`)}
    <p class="soft small">${number(pages.items.length)} of ${number(found.counts[severity === "all" ? "total" : severity])} findings are shown. ${pages.next && html`<button type="button" class="plain small" onClick=${pages.more}>Show more</button>`}</p>`;
}

function byFile(items) {
  const files = new Map(items.map((one) => [one.file, []]));
  for (const one of items) files.get(one.file).push(one);
  return [...files];
}

function Finding({ one, lookers }) {
  const place = one.line === one.end_line ? `line ${one.line}` : `lines ${one.line} to ${one.end_line}`;
  return html`<article class="finding">
    <div>
      <p class="line-up"><${Badge} state=${one.severity} /> <span class="soft small">${[place, one.rule, one.cwe, one.confidence !== null && `${percent(one.confidence)} sure`].filter(Boolean).join(" · ")}</span></p>
      <${ModelText} text=${one.finding} />
      ${one.rejected && html`<p class="bad small">Rejected: ${one.rejected}</p>`}
      ${one.fix && html`<span class="role">Fix</span><${ModelText} text=${one.fix} />`}
      ${one.replacement !== null && html`<details><summary class="small">Lines to put there</summary><pre class="text mono" tabindex="0">${one.replacement}</pre></details>`}
      <p class="soft small">Found by ${one.by.map((name) => (lookers.get(name) === name ? name : `${name} (${lookers.get(name)})`)).join(", ")}</p>
      ${one.origins.map((each) => html`<p class="soft small">${each.agent}, ${each.severity}: ${each.finding}</p>`)}
    </div>
    <${Code} one=${one} />
  </article>`;
}

function Code({ one }) {
  if (one.code === null) return html`<p class="soft small">The run has no copy of these lines.</p>`;
  return html`<pre class="code" tabindex="0"><code>${one.code.lines.map((text, place) => {
    const line = one.code.first + place;
    return html`<span class=${line >= one.line && line <= one.end_line ? "line marked" : "line"}><span class="no">${line}</span> ${text}</span>`;
  })}</code></pre>`;
}
