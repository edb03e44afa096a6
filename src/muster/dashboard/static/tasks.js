// Tasks: the board of all of them, and one with what was asked, what was changed, and the decision about it beside the changes.
import { html, into, useChange, useNow, useState, useTicks } from "./html.js";
import { post, useGet } from "./http.js";
import { count, duration, elapsed, number } from "./format.js";
import { Action, Ago, Badge, Clock, Command, CostOf, Empty, Facts, Failure, Loading, RepositoryChanges, Tags, Waiting } from "./parts.js";
import { DiffFiles } from "./diff.js";
import { AnsiText, Json, ModelText } from "./text.js";

const COLUMNS = [
  ["Pending", ["pending"], "Nothing waits for a slot."],
  ["Running", ["running"], "No slot is at work."],
  ["In review", ["pending_review"], "Nothing waits for you."],
  ["Done", ["completed"], "Nothing is done yet."],
  ["Not done", ["failed", "canceled"], "Nothing failed."],
];
const MOST = 200;

/** What a task is called: its name, else the first line of its prompt. */
export const taskTitle = (task) => task.name ?? task.original_prompt.split("\n")[0];
const hasAsides = (task) => task.other_branches.length > 0 || task.nested_repositories.length > 0 || task.unsaved_files.length > 0 || task.operation !== null;

/** What is said of the user's repository where a task is one of many; nothing if it is as it was. */
const touches = (task) => (task.repository_changes.length > 0 ? "your repository changed" : task.repository_unknown ? "repository not compared" : "");

export function TasksView() {
  const { data, error, reload } = useGet(`/api/tasks?limit=${MOST}`);
  useTicks(1500, reload);
  const now = useNow();
  const tasks = data?.tasks ?? [];
  return html`<div class="between"><h1>Tasks</h1><div class="actions"><a class="plain" href="#/pool">Pool</a><a class="main" href="#/start/task">New task</a></div></div>
    <${Waiting} data=${data} error=${error} what="tasks" />
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
    ${data?.more && html`<p class="soft small">The newest ${number(MOST)} tasks are shown. All of them: <code>muster task list --limit N</code></p>`}`;
}

function Card({ task, now }) {
  return html`<a class=${`task-card s-${task.state}`} href=${`#/tasks/${task.id}`}>
    ${task.name && html`<strong class="under">${task.name}</strong>`}
    <span class="prompt">${task.original_prompt}</span>
    <span class="under soft small">${[task.slot, task.agent].filter(Boolean).join(" · ")}</span>
    <span class="under soft small">
      ${task.state === "running" ? duration(elapsed(task.started_at, null, now)) : html`<${Ago} at=${task.ended_at ?? task.created_at} now=${now} />`} · <${CostOf} of=${task} />
      ${task.rejection_count > 0 && html` · ${task.rejection_count} × rejected`}
    </span>
    ${task.changed !== null && html`<span class="under soft small">${count(task.changed, "file")} changed${hasAsides(task) && ", and more"}${task.branch && html` on <code>${task.branch}</code>`}${task.merged_into && `, merged into ${task.merged_into}`}</span>`}
    ${touches(task) && html`<span class="under"><${Badge} state="waiting" text=${touches(task)} /></span>`}
    ${(task.state === "canceled" || task.state === "failed" || task.permission || task.tags.length > 0) && html`<span class="under">
      ${(task.state === "canceled" || task.state === "failed") && html`<${Badge} state=${task.state} />`}
      ${task.permission && html`<${Badge} state="waiting" text="asks permission" />`} <${Tags} names=${task.tags} /></span>`}
  </a>`;
}

const OPEN = new Set(["pending", "running", "pending_review"]);

export function TaskView({ id }) {
  const { data: task, error, reload } = useGet(`/api/tasks/${encodeURIComponent(id)}`);
  const diff = useGet(`/api/tasks/${encodeURIComponent(id)}/diff`);
  const logs = useGet(`/api/tasks/${encodeURIComponent(id)}/logs`);
  const [failure, tell] = useState(null);
  useTicks(task && OPEN.has(task.state) ? 1500 : 0, reload, [task?.state]);
  useTicks(task?.state === "running" ? 1500 : 0, logs.reload, [task?.state]);
  useChange([task?.state, task?.rejection_count], () => {
    diff.reload();
    logs.reload();
  });
  if (!task) return html`<${Waiting} error=${error} what="the task"><p><a href="#/tasks">All tasks</a></p><//>`;
  const act = (name, body) => async () => {
    await post(`/api/tasks/${task.id}/${name}`, body);
    reload();
  };
  return html`<nav class="crumbs small" aria-label="Where this is"><a href="#/tasks">Tasks</a></nav>
    <section class="card padded">
      <div class="between"><h1 class="task-title">${taskTitle(task)}</h1>
        <div class="actions"><a class="plain" href=${`#/runs/${task.run}`}>Calls and events</a>
          ${(task.state === "failed" || task.state === "canceled") && html`<${Action} label="Try again" act=${act("retry")} onError=${tell} />`}
          ${OPEN.has(task.state) && html`<${Action} label="Cancel" confirm="Really cancel?" kind="danger" act=${act("cancel")} onError=${tell} />`}</div></div>
      <p class="under"><${Badge} state=${task.state} /> <span class="soft">${task.id}</span> <${Tags} names=${task.tags} /></p>
      <${Facts} items=${[
        ["Slot", html`<a href="#/pool">${task.slot ?? "none yet"}</a>`], ["Agent", task.agent ?? "–"], ["Cost", html`<${CostOf} of=${task} />`], [task.ended_at ? "Was open for" : "Open for", duration(elapsed(task.started_at, task.ended_at))],
        task.turns > 0 && ["Turns", number(task.turns)], task.rejection_count > 0 && ["Rejected", `${task.rejection_count} ×`], task.branch && ["Branch", html`<code>${task.branch}</code>${task.merged_into && html`, merged into <code>${task.merged_into}</code>`}`],
        ["Submitted", html`<${Ago} at=${task.created_at} />`],
      ]} />
    </section>
    ${failure && html`<${Failure} error=${failure} />`}
    <${Notices} task=${task} />
    ${task.permission && html`<${Permission} task=${task} act=${act} tell=${tell} />`}
    <div class=${`task-parts ${task.state === "pending_review" ? "deciding" : ""}`}>
      <div>
        <${Work} task=${task} diff=${diff} />
        <h2>Task</h2><section class="card padded"><${ModelText} text=${task.original_prompt} /></section>
        <h2>Log</h2><${Log} found=${logs} />
      </div>
      ${task.state === "pending_review" && !task.permission && html`<${Decision} key=${task.rejection_count} last=${task.rejection_count + 1 >= task.max_rejections} act=${act} tell=${tell} />`}
    </div>`;
}

/** The run of a task, in words: what it changed and said. */
export function TaskTab({ run }) {
  const { data: task, error, reload } = useGet(`/api/tasks/${run.id}`);
  const diff = useGet(`/api/tasks/${run.id}/diff`);
  useChange([run.state], () => {
    reload();
    diff.reload();
  });
  if (!task) return html`<${Waiting} error=${error} what="the task" />`;
  return html`<p class="soft">${task.branch && html`On the branch <code>${task.branch}</code>${task.merged_into && html`, merged into <code>${task.merged_into}</code>`}. `}<a href=${`#/tasks/${task.id}`}>The task, with its log${OPEN.has(task.state) && " and what can be done about it"}</a></p>
    <${Notices} task=${task} /><${Work} task=${task} diff=${diff} />`;
}

const Work = ({ task, diff }) => html`<h2>Changes</h2><${Diff} task=${task} found=${diff} />
  <h2>What it said</h2><section class="card padded">${task.output ? html`<${ModelText} text=${task.output} />` : html`<p class="soft">${task.ended_at ? "Nothing." : "Nothing yet."}</p>`}</section>`;

/** What people must know of a task before they look at its changes. */
function Notices({ task }) {
  return html`${hasAsides(task) && html`<div class="notice warn" role="status"><p>Not all of its work is on its branch. There is more:</p><ul>${task.beside.map((what) => html`<li key=${what}>${what}</li>`)}</ul></div>`}
    ${task.handed_over.filter((one) => one.missing.length > 0).map((one) => html`<div key=${one.task} class="notice warn" role="status"><p>It did not get this from <a href=${`#/tasks/${one.task}`}>${one.name ?? one.task}</a>, on which it depends:</p><ul>${one.missing.map((what) => html`<li key=${what}>${what}</li>`)}</ul></div>`)}
    <${RepositoryChanges} of=${task} />
    ${task.reason && html`<div class="notice warn" role="status"><p>${task.reason}</p>${task.remedy && html`<${Command} text=${task.remedy} />`}</div>`}
    ${task.error && html`<${Failure} error=${{ message: task.error.message ?? "The task failed." }}>${task.stderr && !task.error.message?.includes(task.stderr.trim()) && html`<${AnsiText} text=${task.stderr} />`}<//>`}`;
}

function Decision({ last, act, tell }) {
  const [feedback, type] = useState("");
  return html`<aside class="card padded decide" aria-label="Review">
    <h2>Your review</h2>
    <p class="soft small">Approve it as it is, or say what to do differently: ${last ? "it allows no further rejection, and fails with this one." : "it is done again with all feedback."}</p>
    <${Action} label="Approve" kind="main wide" act=${act("approve")} onError=${tell} />
    <label for="feedback">Feedback</label>
    <textarea id="feedback" rows="6" value=${feedback} onInput=${into(type)} placeholder="What is to be different?"></textarea>
    <${Action} label="Reject with feedback" kind="danger wide" act=${act("reject", { feedback })} onError=${tell} disabled=${feedback.trim() === ""} />
  </aside>`;
}

function Permission({ task, act, tell }) {
  return html`<section class="card padded question" aria-label="Permission"><h2>It asks permission for ${task.permission.tool ?? "a tool"}</h2>
    <${Json} value=${task.permission.input} />
    <div class="actions"><${Action} label="Allow" kind="main" act=${act("allow", {})} onError=${tell} /><${Action} label="Deny" kind="danger" act=${act("deny", {})} onError=${tell} /></div></section>`;
}

const MOST_OTHERS = 5; // tasks that are named

/** The other tasks that changed files, with the files that they share and the names of those that have one. */
function byTasks(overlaps, id) {
  const found = new Map();
  for (const { path, tasks, names } of overlaps) {
    const others = tasks.filter((task) => task !== id);
    const known = found.get(others.join()) ?? [others, [], names];
    known[1].push(path);
    found.set(others.join(), known);
  }
  return [...found.values()];
}

/** What there is where a diff is empty: nothing, or work that is elsewhere. */
const nothingIn = (task) => (hasAsides(task) ? `Its branch has no changes. ${task.summary}` : task.changed > 0 ? task.summary : touches(task) ? "It has changed no file. What is known of your repository is told above." : "It has changed nothing.");

function Diff({ task, found }) {
  const { id, files } = task;
  if (found.error) return html`<section class="card padded"><p class="soft">${found.error.status === 404 || found.error.status === 409 ? "It has no worktree of its own, so there is no diff." : found.error.message}</p></section>`;
  if (!found.data) return html`<${Loading} what="the diff" />`;
  const { diff, overlaps } = found.data;
  return html`<section class="card diff" aria-label="Diff">
    ${files.length > 0 && html`<p class="soft small files">${files.map((one) => (typeof one === "string" ? one : one.path)).join(", ")}${task.changed > files.length && ` and ${number(task.changed - files.length)} more`}</p>`}
    ${overlaps.length > 0 && html`<div class="notice warn"><p>Other tasks changed these files too:</p><ul>${byTasks(overlaps, id).map(([tasks, paths, names]) => html`<li key=${tasks}>${paths.join(", ")}: ${tasks.slice(0, MOST_OTHERS).map((task, place) => html`${place > 0 && ", "}<a href=${`#/tasks/${task}`}>${names[task] ?? task}</a>`)}${tasks.length > MOST_OTHERS && ` and ${number(tasks.length - MOST_OTHERS)} more`}</li>`)}</ul></div>`}
    ${diff === "" ? html`<p class="soft padded">${nothingIn(task)}</p>` : html`<${DiffFiles} diff=${diff} />`}
  </section>`;
}

function Log({ found }) {
  const log = found.data?.log ?? [];
  if (found.error) return html`<${Failure} error=${found.error} />`;
  return html`<section class="card log" aria-label="Log">${log.length === 0 ? html`<p class="soft padded">Nothing has happened yet.</p>` : html`<ol>${log.map((one, place) => html`<li key=${place}>
    <span class="soft mono"><${Clock} at=${one.at} /></span> ${one.type === "event" ? html`<span class="mono">${one.kind}</span>` : ""} ${one.text && one.text !== log[place - 1]?.text && html`<${AnsiText} text=${one.text} />`}</li>`)}</ol>`}</section>`;
}

export function TaskLink({ run }) {
  return html`<a class="plain" href=${`#/tasks/${run.id}`}>Open the task</a>`;
}
