// A chain step by step: what is done, what the step under way writes just now, and where it failed.
import { html, useChange, useState } from "./html.js";
import { useGet, useStream } from "./http.js";
import { LIVE, number, shortMoney, word } from "./format.js";
import { Badge, Facts, Panel, RepositoryChanges, Waiting } from "./parts.js";
import { AnsiText, Json, ModelText } from "./text.js";
import { Rows } from "./window.js";

export function ChainTab({ run, live }) {
  const { data: chain, error, reload } = useGet(`/api/chains/${run.id}/progress`);
  const [writing, tell] = useState({});
  useStream(LIVE.has(run.state) ? run.id : null, live.first, (updates) => tell((old) => updates.reduce(heard, old)));
  useChange([run], reload); // which is asked for at most once a second
  if (!chain) return html`<${Waiting} error=${error} what="the steps" />`;
  const done = chain.completed_steps;
  return html`<section class=${`card verdict ${chain.status === "completed" ? "ok" : LIVE.has(chain.status) ? "pending" : ""}`} aria-label="Progress">
      <span class="word">${word(run.state)}</span>
      <p>${number(done)} of ${number(chain.total_steps)} ${chain.rows.length ? "rows" : "steps"} done${chain.current_name ? `; ${LIVE.has(chain.status) ? "now" : "it stopped at"} ${chain.current_step}, ${chain.current_name}` : ""}.</p>
      <progress max=${chain.total_steps || 1} value=${done} aria-label="Steps done">${done}</progress>
      ${(chain.branch || chain.setup) && html`<${Facts} items=${[
        chain.branch && ["Branch", html`<code>${chain.branch}</code>`], chain.summary && ["Changes", chain.summary], chain.setup && ["Prepares its working tree", html`<code>${chain.setup}</code>`]]} />`}
    </section>
    <${RepositoryChanges} of=${chain} />
    ${chain.rows.length > 0 ? html`<${RowsOfInput} rows=${chain.rows} />` : html`<ol class="steps" aria-label="Steps">
      ${chain.steps.map((step, place) => html`<${Step} key=${step.name} step=${step} place=${place + 1} texts=${textsOf(step, writing)} />`)}</ol>`}`;
}

/** What calls are writing, by their keys, after one more update. */
function heard(texts, { name, data }) {
  if (name === "delta") return { ...texts, [data.key]: (texts[data.key] ?? "").slice(0, data.offset) + data.text };
  return name === "end" ? {} : texts;
}

const textsOf = (step, writing) => (step.status === "running" ? Object.entries(writing).filter(([key]) => key.startsWith(`step/${step.name}/`)) : []);

function Step({ step, place, texts }) {
  const [open, tell] = useState(null); // what the reader chose; else what matters is open
  const shown = open ?? (step.status === "failed" || step.status === "running");
  const facts = [step.items !== null && `${number(step.items)} items`, step.retries_used > 0 && `${step.retries_used} × tried again`, step.cost_usd > 0 && shortMoney(step.cost_usd)].filter(Boolean);
  const has = step.output || Object.keys(step.values).length > 0 || texts.length > 0;
  return html`<li class=${`card step s-${step.status}`}>
    <div class="between"><h2><span class="soft">${place}</span> ${step.name}</h2>
      <p class="line-up">${facts.length > 0 && html`<span class="soft small">${facts.join(" · ")}</span>`}<${Badge} state=${step.status} />
        ${has && html`<button type="button" class="plain small" aria-expanded=${String(shown)} onClick=${() => tell(!shown)}>${shown ? "Hide" : "Show"} output</button>`}</p></div>
    ${step.skipped && html`<p class="soft small">${step.skipped}</p>`}
    ${step.error && html`<div class="notice bad"><${AnsiText} text=${step.error} /></div>`}
    ${shown && step.output && html`<${ModelText} text=${step.output} />`}
    ${shown && Object.keys(step.values).length > 0 && html`<details><summary class="small">Values it hands on</summary><${Json} value=${step.values} /></details>`}
    ${shown && texts.map(([key, text]) => html`<div key=${key} class="message writing" role="log" aria-label="Being written"><span class="role">${key.slice(6 + step.name.length)}</span><p class="text">${text}</p></div>`)}
    ${step.status === "running" && texts.length === 0 && html`<p class="soft small" role="status">At work …</p>`}
  </li>`;
}

function RowsOfInput({ rows }) {
  const [chosen, open] = useState(null);
  return html`${chosen && html`<${Panel} title=${`Row ${chosen.row}, ${chosen.status}`} onClose=${() => open(null)}><${AnsiText} text=${chosen.error ?? ""} /><//>`}
    <section class="card" aria-label="Rows of inputs"><${Rows} label="Rows of inputs" kind="event-rows rows-of-input" items=${rows} columns=${[["Row", "name"], ["State", "state"], ["Error", "data"]]}
    heights=${[38, 60]} keyOf=${(row) => row.row} onOpen=${open} cells=${(row) => [html`<span class="title">${number(row.row)}</span>`, html`<${Badge} state=${row.status} />`, html`<span class="line soft">${row.error}</span>`]} /></section>`;
}
