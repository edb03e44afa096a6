// The board of tasks: what waits, what is worked on, what wants a review, and what is done.
import { html, useNow, useTicks } from "./html.js";
import { useGet } from "./http.js";
import { duration, elapsed, number, shortMoney } from "./format.js";
import { Ago, Badge, Command, Empty, Failure, Loading, Tags } from "./parts.js";

const COLUMNS = [
  ["Pending", ["pending"], "Nothing waits for a slot."],
  ["Running", ["running"], "No slot is at work."],
  ["In review", ["pending_review"], "Nothing waits for you."],
  ["Done", ["completed"], "Nothing is done yet."],
  ["Not done", ["failed", "canceled"], "Nothing failed."],
];
const MOST = 200;

export function TasksView() {
  const { data, error, reload } = useGet(`/api/tasks?limit=${MOST}`);
  useTicks(1500, reload);
  const now = useNow();
  const tasks = data?.tasks ?? [];
  return html`<div class="between"><h1>Tasks</h1><div class="actions"><a class="plain" href="#/pool">Pool</a><a class="main" href="#/start/task">New task</a></div></div>
    ${error && html`<${Failure} error=${error} />`}
    ${!data && !error && html`<${Loading} what="tasks" />`}
    ${data && tasks.length === 0 && html`<section class="card"><${Empty} title="No task has been submitted yet">
      <p>A task is a prompt for a CLI agent, which works on it in a slot of the pool, in a worktree of its own. Submit one <a href="#/start/task">here</a>, or in a terminal:</p>
      <${Command} text='muster task submit --review "Write a README"' /><//></section>`}
    ${tasks.length > 0 && html`<div class="board">${COLUMNS.map(([title, states, none]) => {
      const found = tasks.filter((task) => states.includes(task.state));
      return html`<section key=${title} class="column" aria-label=${title}>
        <h2>${title} <span class="soft">${number(found.length)}</span></h2>
        ${found.length === 0 && html`<p class="soft small">${none}</p>`}
        ${found.map((task) => html`<${Card} key=${task.id} task=${task} now=${now} />`)}
      </section>`;
    })}</div>`}
    ${tasks.length === MOST && html`<p class="soft small">The newest ${number(MOST)} tasks are shown.</p>`}`;
}

function Card({ task, now }) {
  return html`<a class=${`task-card s-${task.state}`} href=${`#/tasks/${task.id}`}>
    <span class="prompt">${task.original_prompt}</span>
    <span class="under soft small">${[task.slot, task.agent].filter(Boolean).join(" · ")}</span>
    <span class="under soft small">
      ${task.state === "running" ? duration(elapsed(task.started_at, null, now)) : html`<${Ago} at=${task.ended_at ?? task.created_at} now=${now} />`} · ${shortMoney(task.cost_usd)}
      ${task.rejection_count > 0 && html` · ${task.rejection_count} × rejected`}
    </span>
    ${(task.state === "canceled" || task.state === "failed" || task.permission || task.tags.length > 0) && html`<span class="under">
      ${(task.state === "canceled" || task.state === "failed") && html`<${Badge} state=${task.state} />`}
      ${task.permission && html`<${Badge} state="waiting" text="asks permission" />`} <${Tags} names=${task.tags} /></span>`}
  </a>`;
}
