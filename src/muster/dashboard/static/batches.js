// Batches: calls that wait at a provider for half the price; what they saved, one batch in full, and its cancel.
import { html, useAddressed, useNow, useState, useTicks } from "./html.js";
import { post, useGet } from "./http.js";
import { duration, elapsed, number, percent, shortMoney } from "./format.js";
import { Action, Ago, Badge, CallsBar, Choice, Command, Empty, Facts, Failure, sentence, Stalled, usd, Waiting } from "./parts.js";
import { List, Rows, usePages } from "./window.js";

const OPEN = ["planned", "sent", "running", "ended"];
const FILTERS = { all: ["All", []], open: ["Under way", OPEN], collected: ["Collected", ["collected"]], lost: ["Refused or abandoned", ["refused", "abandoned"]] };
const COLUMNS = [["Batch", "name"], ["State", "state"], ["Calls", "calls"], ["Cost", "cost"], ["Saved", "saved number"], ["Age", "when"]];

const lasted = (seconds) => (seconds < 1 ? "less than 1 s" : duration(seconds)); // providers tell whole seconds
const isOpen = (batch) => OPEN.includes(batch.state);
const saving = (of) => (of.live_usd > 0 ? `${shortMoney(of.saving_usd)} (${percent(of.saving_usd / of.live_usd)})` : "–");
const State = ({ batch }) => html`<${Badge} state=${batch.state} text=${batch.cancel_requested && isOpen(batch) ? "canceling" : undefined} />`;

/** How many calls have an outcome; the provider may know of more than were fetched. */
function Progress({ batch: { members, requests: total, provider_done: told } }) {
  const failed = total - members.succeeded - members.waiting;
  const done = Math.max(members.succeeded, (told ?? 0) - failed);
  return html`<span class="count">${number(done)}<span class="soft"> of ${number(total)}</span>${failed > 0 && html`<span class="bad"> · ${number(failed)} failed</span>`}</span><${CallsBar} calls=${{ total, failed, done }} />`;
}

export function BatchesView() {
  const [filter, choose] = useAddressed("state", "all");
  const { data: all, reload } = useGet("/api/batches/stats");
  const query = (FILTERS[filter]?.[1] ?? []).map((state) => `&state=${state}`).join("");
  const pages = usePages(`/api/batches?limit=100${query}`, "batches", [filter]);
  const going = pages.items.some(isOpen);
  useTicks(going ? 2000 : 6000, () => (reload(), pages.refresh((batch) => batch.id)), [filter, going]);
  return html`<h1>Batches</h1>
    ${all?.batches > 0 && html`<section class="card padded lead" aria-label="All batches"><${Facts} items=${[
      ["Saved against live prices", html`<strong class="big">${saving(all)}</strong>`],
      ["Batches", html`${number(all.batches)}<span class="soft">, ${number(all.under_way)} under way</span>`],
      ["Calls", html`${number(all.requests)}<span class="soft">, ${percent(all.success_rate)} succeeded</span>`],
      all.completion_seconds && ["Half of them took", html`${lasted(all.completion_seconds.p50)}<span class="soft">, 95% ${lasted(all.completion_seconds.p95)}</span>`],
    ]} /></section>`}
    <section class="card" aria-label="Batches">
      <div class="filters"><${Choice} label="State" value=${filter} onChange=${choose} options=${Object.entries(FILTERS).map(([name, [text]]) => [name, text])} /></div>
      <${BatchRows} pages=${pages} going=${going} none=${html`<${Empty} title=${filter === "all" ? "No batch has been sent yet" : "No batch is in this state"}>
        <p>Calls that may wait cost about half in a batch:</p><${Command} text="muster run suite.yaml --agent A --dispatch batch" /><//>`} />
    </section>`;
}

function BatchRows({ going, ...list }) {
  const now = useNow(going);
  const cells = (batch) => [
    html`<span class="title">${batch.id}</span><span class="under soft">${batch.provider} · ${Object.values(batch.agents).join(", ")}${batch.why && html` · <span class="bad" title=${[batch.why, ...batch.next].join("\n")}>${batch.why}</span>`}</span>`,
    html`<${State} batch=${batch} />`,
    html`<${Progress} batch=${batch} />`,
    isOpen(batch) ? html`<span class="soft">at most</span> ${usd(batch.reserved_usd)}` : usd(batch.cost_usd),
    html`<span class="thin soft">saved </span>${saving(batch)}`,
    html`<${Ago} at=${batch.created_at} now=${now} />`,
  ];
  return html`<${List} what="batches" label="Batches" kind="run-rows batch-rows" columns=${COLUMNS} cells=${cells} heights=${[60, 112]} keyOf=${(batch) => batch.id} href=${(batch) => `#/batches/${batch.id}`} ...${list} />`;
}

export function BatchView({ id }) {
  const { data: batch, error, reload } = useGet(`/api/batches/${encodeURIComponent(id)}`);
  const [failure, tell] = useState(null);
  const open = batch !== null && isOpen(batch);
  const now = useNow(open);
  useTicks(open ? 2000 : 0, reload, [open]);
  if (!batch) return html`<${Waiting} error=${error} what="the batch"><p><a href="#/batches">All batches</a></p><//>`;
  const cancel = async () => {
    await post(`/api/batches/${batch.id}/cancel`);
    reload();
  };
  return html`<nav class="crumbs small" aria-label="Where this is"><a href="#/batches">Batches</a></nav>
    <section class="card padded run-head">
      <div class="between"><h1>${batch.id}</h1>${open && !batch.cancel_requested && html`<${Action} label="Cancel" confirm="Really cancel?" kind="danger" onError=${tell} act=${cancel} />`}</div>
      <p class="under"><${State} batch=${batch} /> ${batch.note && html`<span class="soft">${sentence(batch.note)}</span>`}</p>
      <${Facts} items=${[
        ["Calls", html`<${Progress} batch=${batch} />`],
        open ? ["Can cost at most", usd(batch.reserved_usd)] : ["Cost", html`${usd(batch.cost_usd)}<span class="soft small"> instead of ${usd(batch.live_usd)} live</span>`],
        ["Saved against live prices", saving(batch)],
        ["Provider", html`${batch.provider}${batch.provider_state && html`<span class="soft">, ${batch.provider_state}</span>`}<br /><span class="soft small">${batch.provider_id ?? "no id yet"}</span>`],
        ["Agents", Object.keys(batch.agents).join(", ")],
        ["Tokens", `${number(batch.tokens.input)} in, ${number(batch.tokens.output)} out`],
        ["Planned", html`<${Ago} at=${batch.created_at} now=${now} />`],
        [open ? "Has waited" : "Took", lasted(elapsed(batch.submitted_at ?? batch.created_at, batch.ended_at ?? batch.collected_at, now))],
      ]} />
    </section>
    <${Stalled} batches=${[batch]} />
    ${(failure ?? batch.error) && html`<${Failure} error=${failure ?? batch.error} />`}
    <h2>Runs with calls in it</h2><section class="card" aria-label="Runs">
      <${Rows} label="Runs" kind="two" items=${batch.runs} columns=${[["Run"], ["Calls", "number"]]} heights=${[42, 42]} keyOf=${(one) => one.run}
        cells=${(one) => [html`<span class="title">${one.run}</span>`, number(one.calls)]} href=${(one) => `#/runs/${one.run}`} />
    </section>`;
}
