// The pool: its slots and what each does, what waits for one, messages to them and texts that all of them are told.
import { html, into, useNow, useState, useTicks } from "./html.js";
import { post, useGet } from "./http.js";
import { count, number } from "./format.js";
import { taskTitle } from "./tasks.js";
import { Action, Ago, Badge, Command, CostBar, CostOf, Empty, Facts, Failure, Loading, Panel, usd } from "./parts.js";

const MOST = 200; // tasks

export function PoolView() {
  const found = [useGet("/api/pool"), useGet("/api/pool/slots"), useGet(`/api/tasks?state=pending&state=running&limit=${MOST}`)];
  const [failure, tell] = useState(null);
  const [talksTo, talk] = useState(null);
  const now = useNow();
  const reload = () => found.forEach((one) => one.reload());
  useTicks(1500, reload);
  const error = failure ?? found.map((one) => one.error).find(Boolean);
  const [pool, all, work] = found.map((one) => one.data);
  if (!pool || !all || !work) return html`<h1>Pool</h1>${error ? html`<${Failure} error=${error} />` : html`<${Loading} what="the pool" />`}`;
  const change = (path, body) => async () => {
    const changed = post(`/api/pool/${path}`, body);
    reload(); // a pool that is drained says so long before it is empty
    await changed;
    reload();
  };
  const stopped = pool.draining ? "It is drained and takes no tasks: those at work end, those that wait stay." : pool.driver ? null : "No process drives it, so tasks wait.";
  return html`<div class="between"><h1>Pool</h1><div class="actions"><a class="plain" href="#/tasks">Board of tasks</a><a class="main" href="#/start/task">New task</a></div></div>
    ${error && html`<${Failure} error=${error} />`}
    <${Status} pool=${pool}>${!pool.draining && html`<${Action} label="Drain" confirm="Take no more tasks?" kind="danger" onError=${tell} act=${change("drain", {})} />`}<//>
    ${stopped && html`<div class="notice warn" role="status"><p><strong>${stopped}</strong> Start the server again, or:</p><${Command} text="muster pool start" /></div>`}
    <div class="between"><h2>Slots</h2><div class="actions">
      <${Action} label="Remove one" act=${change("scale", { slots: "-1" })} onError=${tell} /><${Action} label="Add one" act=${change("scale", { slots: "+1" })} onError=${tell} />
      <button type="button" class="plain" onClick=${() => talk("")}>Message to all</button></div></div>
    ${all.slots.length === 0 && html`<section class="card"><${Empty} title="The pool has no slots yet"><p>A slot is a place where a CLI agent works on tasks. Say in muster.toml who works there, and start the server again:</p>
      <${Command} text=${'[agents.coder]\nkind = "claude-code"\n\n[pool]\nslots = 2\nagent = "coder"'} /><//></section>`}
    <div class="slots">${all.slots.map((slot) => html`<${SlotCard} key=${slot.id} slot=${slot} task=${work.tasks.find((task) => task.id === slot.current_task)} now=${now} talk=${talk} />`)}</div>
    <h2>Queue <span class="soft">${number(pool.tasks.pending ?? 0)}</span></h2><${Queue} tasks=${work.tasks.filter((task) => task.state === "pending").reverse()} all=${pool.tasks.pending ?? 0} now=${now} />
    <${SharedTexts} />
    ${talksTo !== null && html`<${Messages} slot=${talksTo} onClose=${() => talk(null)} />`}`;
}

function Status({ pool, children }) {
  const { slots, tasks } = pool;
  return html`<section class="card padded lead" aria-label="The pool"><div class="between"><${Facts} items=${[
    ["Slots", Object.entries(slots).filter(([, many]) => many > 0).map(([state, many]) => `${many} ${state}`).join(", ") || "none"],
    ["Tasks", html`${number(tasks.pending ?? 0)} waiting, <a href="#/tasks">${number(tasks.pending_review ?? 0)} in review</a>`],
    ["Cost", html`<${CostOf} of=${pool} /><${CostBar} run=${pool} />${pool.unlisted_usd > 0 && html`<span class="soft small">${usd(pool.unlisted_usd)} of it by no task of a slot: deleted ones, or of removed slots</span>`}`],
    ["Driven by", pool.driver ?? "nobody"],
  ]} />${children}</div></section>`;
}

function SlotCard({ slot, task, talk, now }) {
  return html`<section class=${`card padded slot s-${slot.state}`} aria-label=${`Slot ${slot.name}`}>
    <div class="between"><h3>${slot.name}${slot.role && html` <span class="tag">${slot.role}</span>`}</h3><${Badge} state=${slot.state} /></div>
    <p class="does">${slot.current_task ? html`<a href=${`#/tasks/${slot.current_task}`}>${task ? taskTitle(task) : (slot.current_task_name ?? slot.current_task)}</a>${task?.started_at && html` <span class="soft small"><${Ago} at=${task.started_at} now=${now} /></span>`}`
      : html`<span class="soft">${slot.state === "idle" ? "Waits for a task." : "Takes no tasks."}</span>`}</p>
    ${slot.error && html`<p class="bad small">${slot.error}</p>`}
    <div class="between"><span class="soft small">${count(slot.tasks_completed, "task")} done · <${CostOf} of=${slot} />${slot.restart_count > 0 ? ` · ${count(slot.restart_count, "restart")}` : ""}</span>
      <button type="button" class="plain small" aria-label=${`Messages of ${slot.name}`} onClick=${() => talk(slot.name)}>Messages</button></div>
  </section>`;
}

function Queue({ tasks, all, now }) {
  if (tasks.length === 0) return html`<p class="soft">No task waits for a slot.</p>`;
  return html`<ol class="card queue" aria-label="Queue">${tasks.map((task) => html`<li key=${task.id}><a href=${`#/tasks/${task.id}`}>${taskTitle(task)}</a>
      <span class="soft small"><${Ago} at=${task.created_at} now=${now} />${task.priority !== 0 && `, priority ${task.priority}`}${task.after.length > 0 && `, after ${task.after.join(", ")}`}${task.reason && `, ${task.reason}`}</span></li>`)}
    ${all > tasks.length && html`<li class="soft small">… and ${number(all - tasks.length)} more on the <a href="#/tasks">board</a></li>`}</ol>`;
}

/** What a slot has not read, and a field for one message more; without a name it goes to all slots. */
function Messages({ slot, onClose }) {
  const place = slot === "" ? null : `/api/pool/slots/${encodeURIComponent(slot)}/messages`;
  const { data, error, reload } = useGet(place);
  const [text, type] = useState("");
  const [said, tell] = useState({});
  useTicks(place ? 2000 : 0, reload, [place]);
  const send = async () => {
    const sent = await post(place ?? "/api/pool/messages", { text });
    tell({ done: `Sent to ${sent.slots?.join(", ") ?? slot}.` });
    type("");
    reload();
  };
  const failure = error ?? said.failure;
  return html`<${Panel} title=${slot === "" ? "Message to all slots" : `Messages of ${slot}`} onClose=${onClose}>
    ${failure && html`<${Failure} error=${failure} />`}
    ${data?.messages.length === 0 && html`<p class="soft">Its agent has read all messages.</p>`}
    ${data?.messages.map((one) => html`<div key=${one.id} class="box"><span class="soft small">unread, ${one.from ? `from ${one.from}, ` : ""}<${Ago} at=${one.sent_at} /></span><p>${one.text}</p></div>`)}
    <h3><label for="message">New message</label></h3><textarea id="message" rows="4" value=${text} onInput=${into(type)}></textarea>
    <p class="soft small">The agent gets it once: while it works, or with its next task.</p>
    <${Action} label="Send" kind="main" disabled=${text.trim() === ""} act=${send} onError=${(failed) => failed && tell({ failure: failed })} /> <span role="status">${said.done}</span>
  <//>`;
}

function SharedTexts() {
  const { data, error, reload } = useGet("/api/pool/context");
  const [edited, edit] = useState(null);
  const [failure, tell] = useState(null);
  const change = (name, method, body) => async () => {
    await post(`/api/pool/context/${encodeURIComponent(name.trim())}`, body, null, method);
    edit(null);
    reload();
  };
  const texts = Object.entries(data?.context ?? {});
  const type = (field) => (event) => edit({ ...edited, [field]: event.target.value });
  return html`<div class="between"><h2>Shared context</h2><button type="button" class="plain" onClick=${() => edit({ name: "", text: "" })}>Add a text</button></div>
    <section class="card" aria-label="Shared context">
    ${(error ?? failure) && html`<${Failure} error=${error ?? failure} />`}
    ${texts.length === 0 && !edited && html`<p class="soft padded">Texts that are added to the prompt of every task: rules of the project, what others have found out. There is none yet.</p>`}
    ${texts.map(([name, text]) => html`<div key=${name} class="shared padded"><div class="between"><h3>${name}</h3><div class="actions">
        <button type="button" class="plain small" aria-label=${`Change ${name}`} onClick=${() => edit({ name, text })}>Change</button>
        <${Action} label="Delete" confirm="Really delete?" kind="danger small" onError=${tell} act=${change(name, "DELETE")} /></div></div><p class="text">${text}</p></div>`)}
    ${edited && html`<div class="padded shared"><label for="shared-name">Name</label><input id="shared-name" value=${edited.name} onInput=${type("name")} />
      <label for="shared-text">Text</label><textarea id="shared-text" rows="5" value=${edited.text} onInput=${type("text")}></textarea>
      <div class="actions"><${Action} label="Save" kind="main" disabled=${!edited.name.trim() || !edited.text.trim()} onError=${tell} act=${change(edited.name, "PUT", { text: edited.text })} />
        <button type="button" class="plain" onClick=${() => edit(null)}>Close</button></div></div>`}
  </section>`;
}
