// Money: what was spent by day, by agent and by run, and how the budgets above runs stand.
import { html, useAddressed, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { Columns } from "./charts.js";
import { day, money, number, percent, titleOf } from "./format.js";
import { Ago, Badge, Choice, Command, CostBar, CostOf, Empty, Facts, Table, usd, Waiting } from "./parts.js";

const SPANS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"]];
const NAMES = { day: "All runs, today", user: "today: token", pool: "The pool, in all", server: "in all: server" };
const ofBudget = (one) => html`<${CostOf} of=${one} />${one.budget_usd === null && html`<span class="soft"> no limit</span>`}`;

/** What the days have cost beside the rows of a table. */
const unlisted = (cost, what) => cost > 0 && html`<p class="foot soft small">${usd(cost)} more: ${what}.</p>`;

export function MoneyView() {
  const [days, choose] = useAddressed("days", "30");
  const { data, error, reload } = useGet(`/api/costs?days=${days}`);
  useTicks(30_000, reload, [days]);
  return html`<div class="between"><h1>Money</h1><${Choice} label="Time" value=${days} onChange=${choose} options=${SPANS} /></div>
    <${Waiting} data=${data} error=${error} what="what was spent" />
    ${data && html`<${Spent} data=${data} />`}`;
}

function Spent({ data }) {
  const { days, budgets, runs } = data;
  const total = data.cost_usd;
  const dearest = days.reduce((most, day) => (day.cost_usd > most.cost_usd ? day : most));
  const agents = data.agents.filter((one) => one.cost_usd > 0);
  return html`<section class="card padded lead" aria-label="In all"><${Facts} items=${[
      [`Spent since ${day(data.since)}`, html`<strong class="big">${usd(total)}</strong>`],
      ["Today (UTC)", html`${ofBudget(days.at(-1))}<${CostBar} run=${days.at(-1)} />`],
      total > 0 && ["Dearest day", html`${usd(dearest.cost_usd)} <span class="soft small whole">${day(dearest.day)}</span>`],
      data.imputed_usd > 0 && ["Of it covered by subscriptions", usd(data.imputed_usd)],
      data.uncertain_usd > 0 && ["Of it uncertain", usd(data.uncertain_usd)],
      data.reserved_usd > 0 && ["Held for calls under way", usd(data.reserved_usd)],
    ]} />
      ${total > 0 && html`<${Columns} label=${`Spent by day: ${money(total)} from ${day(data.since)} to ${day(data.until)}`} items=${days} value=${(one) => one.cost_usd} limit=${(one) => one.budget_usd}
        told=${(one) => `${day(one.day)}: ${money(one.cost_usd)}${one.budget_usd === null ? "" : ` of ${money(one.budget_usd)}`}`} ends=${[day(data.since), day(data.until)]} />`}
    </section>
    ${total === 0 && html`<section class="card"><${Empty} title="Nothing was spent in this time"><p>What calls cost is booked here as they are answered. Agents without a price, such as those of <code>sim/</code>, cost nothing.</p><//></section>`}
    <h2>Budgets</h2><section class="card" aria-label="Budgets"><ul class="budgets">
      ${budgets.map((one) => html`<li key=${`${one.kind} ${one.name}`}><span class="title">${["user", "server"].includes(one.kind) ? `${one.name}, ${NAMES[one.kind]}` : NAMES[one.kind]}</span><span>${ofBudget(one)}</span><${CostBar} run=${one} /></li>`)}</ul>
      ${budgets.every((one) => one.budget_usd === null) && html`<div class="padded"><p class="soft small">Only single runs have budgets so far. For a day, in muster.toml:</p><${Command} text=${"[budget]\nday_usd = 20.00"} /></div>`}
    </section>
    ${agents.length > 0 && html`<h2>By agent</h2><${Table} label="By agent" columns=${[["Agent"], ["Share", "wide-bar"], ["Cost", "whole"], ["Attempts", "number"]]}
      rows=${agents.map((one) => [one.agent, html`<span class="bar"><span class="part spent" style=${{ width: percent(one.cost_usd / agents[0].cost_usd, 2) }}></span></span>`,
        html`<${CostOf} of=${one} />`, number(one.attempts)])}>${unlisted(data.unlisted_by_agent_usd, "calls of deleted runs")}<//>`}
    ${runs.length > 0 && html`<h2>By run</h2><${Table} label="By run" columns=${[["Run"], ["State"], ["Cost", "whole"], ["Started by"], ["Started", "whole"]]}
      rows=${runs.map((run) => [html`<a href=${`#/runs/${run.id}`}>${titleOf(run)}</a> <span class="soft small">${run.kind}</span>`,
        html`<${Badge} state=${run.state} />`, html`<${CostOf} of=${run} /><${CostBar} run=${run} />`, run.started_by ?? "–", html`<${Ago} at=${run.created_at} />`])}>
      ${unlisted(data.unlisted_by_run_usd, "runs that were deleted, begun before this time, or are cheaper")}
      ${runs.length === 100 && html`<p class="foot soft small">The 100 dearest. <a href="#/runs">All runs</a></p>`}<//>`}`;
}
