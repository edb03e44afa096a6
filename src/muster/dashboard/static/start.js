// Forms that start work. Agents and suites are those that the operator declared; the server checks everything again.
import { html, useState } from "./html.js";
import { newKey, post, useGet } from "./http.js";
import { Command, Failure, Loading, Tabs } from "./parts.js";

const KINDS = [["battle", "Battle"], ["suite", "Suite"], ["task", "Task"]];

export function StartView({ id }) {
  const agents = useGet("/api/agents");
  const library = useGet("/api/library");
  const kind = KINDS.some(([name]) => name === id) ? id : "battle";
  const error = agents.error ?? library.error;
  const names = agents.data?.agents.map((one) => one.name) ?? [];
  return html`<h1>Start</h1>
    <${Tabs} label="What to start" base="#/start" tabs=${KINDS} value=${kind} />
    ${error && html`<${Failure} error=${error} />`}
    ${!error && (!agents.data || !library.data) && html`<${Loading} what="agents" />`}
    ${agents.data && names.length === 0 && html`<div class="notice warn"><p>No agent may be named here yet. Declare one in muster.toml, or list models that requests may name:</p>
      <${Command} text=${'[serve]\nmodels = ["sim/echo"]'} /><p>Then start the server again.</p></div>`}
    ${names.length > 0 && library.data && html`
      ${kind === "battle" && html`<${BattleForm} agents=${names} />`}
      ${kind === "suite" && html`<${SuiteForm} agents=${names} suites=${library.data.items.filter((one) => one.kind === "suite").map((one) => one.name)} />`}
      ${kind === "task" && html`<${TaskForm} agents=${names} />`}`}`;
}

/** A form whose fields are sent under their names; one key for all tries, so that nothing is started twice. */
function StartForm({ about, submit, label, children }) {
  const [failure, tell] = useState(null);
  const [busy, work] = useState(false);
  const [key, renew] = useState(() => newKey());
  const send = async (event) => {
    event.preventDefault();
    work(true);
    tell(null);
    try {
      await submit(new FormData(event.target), key);
    } catch (error) {
      tell(error);
      if (error.status >= 400) renew(newKey()); // refused: what is sent next is another request
    }
    work(false);
  };
  return html`<form class="card padded start" onSubmit=${send}>
    <p class="soft">${about}</p>${children}
    ${failure && html`<${Failure} error=${failure} />`}
    <button class="main" type="submit" disabled=${busy}>${busy ? "Starting …" : label}</button>
  </form>`;
}

const Field = ({ id, label, hint, children }) => html`<div class="field"><label for=${id}>${label}</label>${children}${hint && html`<span class="soft small" id=${`${id}-hint`}>${hint}</span>`}</div>`;
const AgentSelect = ({ id, agents, none }) => html`<select id=${id} name=${id} required=${!none}>${none && html`<option value="">${none}</option>`}${agents.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`;

/** Fields that were filled in, numbers as numbers. */
function filled(form, names, numbers = []) {
  const found = names.map((name) => [name, String(form.get(name) ?? "").trim()]).filter(([, value]) => value !== "");
  return Object.fromEntries(found.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value]));
}

function BattleForm({ agents }) {
  const submit = async (form, key) => {
    const names = ["agentId", "counterpart", "goal", "userMessage", "systemPrompt", "judge", "messageLimit", "budgetUsd"];
    const started = await post("/api/battles/start", filled(form, names, ["messageLimit", "budgetUsd"]), key);
    location.hash = `#/runs/${started.id}`;
  };
  return html`<${StartForm} about="Two agents talk, turn by turn, until the one under test has reached a goal or the limit." label="Start the battle" submit=${submit}>
    <div class="fields">
      <${Field} id="agentId" label="Agent under test"><${AgentSelect} id="agentId" agents=${agents} /><//>
      <${Field} id="counterpart" label="Counterpart"><${AgentSelect} id="counterpart" agents=${agents} none="the agent plays both parts" /><//>
    </div>
    <${Field} id="goal" label="Goal" hint="Without a goal it is played to its limit."><textarea id="goal" name="goal" rows="2" aria-describedby="goal-hint"></textarea><//>
    <${Field} id="userMessage" label="First message" hint="Else the goal, else “Begin.”"><textarea id="userMessage" name="userMessage" rows="2" aria-describedby="userMessage-hint"></textarea><//>
    <${Field} id="systemPrompt" label="System prompt of the agent under test"><textarea id="systemPrompt" name="systemPrompt" rows="2"></textarea><//>
    <div class="fields">
      <${Field} id="judge" label="Judge"><${AgentSelect} id="judge" agents=${agents} none="the usual one" /><//>
      <${Field} id="messageLimit" label="Most turns"><input id="messageLimit" name="messageLimit" type="number" min="1" max="25" value="10" /><//>
      <${Field} id="budgetUsd" label="Budget in dollars"><input id="budgetUsd" name="budgetUsd" type="number" min="0" step="any" placeholder="the usual one" /><//>
    </div>
  <//>`;
}

function SuiteForm({ agents, suites }) {
  if (suites.length === 0) {
    return html`<div class="notice warn"><p>The library has no suite yet. Put one into a folder that muster.toml names:</p><${Command} text=${'[library]\npaths = ["suites"]'} /></div>`;
  }
  const submit = async (form, key) => {
    const body = filled(form, ["judge", "epochs", "budget_usd", "name", "filter"], ["epochs", "budget_usd"]);
    const started = await post("/api/suites/start", { ...body, suites: form.getAll("suites"), agents: form.getAll("agents") }, key);
    location.hash = `#/runs/${started.id}`;
  };
  return html`<${StartForm} about="Every case of the suites is put to every agent that is chosen, and judged." label="Start the suite" submit=${submit}>
    <div class="fields">
      <fieldset class="field"><legend>Suites</legend>${suites.map((name, place) => html`<label key=${name} class="check"><input type="checkbox" name="suites" value=${name} checked=${place === 0} /> ${name}</label>`)}</fieldset>
      <fieldset class="field"><legend>Agents</legend>${agents.map((name) => html`<label key=${name} class="check"><input type="checkbox" name="agents" value=${name} /> ${name}</label>`)}</fieldset>
    </div>
    <div class="fields">
      <${Field} id="judge" label="Judge"><${AgentSelect} id="judge" agents=${agents} none="that of the suite" /><//>
      <${Field} id="epochs" label="Epochs"><input id="epochs" name="epochs" type="number" min="1" max="1000" placeholder="1" /><//>
      <${Field} id="budget_usd" label="Budget in dollars"><input id="budget_usd" name="budget_usd" type="number" min="0" step="any" placeholder="the usual one" /><//>
      <${Field} id="name" label="Name"><input id="name" name="name" placeholder="nightly" /><//>
    </div>
  <//>`;
}

function TaskForm({ agents }) {
  const submit = async (form, key) => {
    const body = filled(form, ["prompt", "agent", "role", "budget_usd"], ["budget_usd"]);
    const started = await post("/api/tasks", { ...body, review: form.get("review") !== null }, key);
    location.hash = `#/tasks/${started.id}`;
  };
  return html`<${StartForm} about="A CLI agent works on the task in a slot of the pool." label="Submit the task" submit=${submit}>
    <${Field} id="prompt" label="What is to be done"><textarea id="prompt" name="prompt" rows="5" required></textarea><//>
    <div class="fields">
      <${Field} id="agent" label="Agent"><${AgentSelect} id="agent" agents=${agents} none="that of the slot" /><//>
      <${Field} id="role" label="Role of the slot"><input id="role" name="role" placeholder="any" /><//>
      <${Field} id="budget_usd" label="Budget in dollars"><input id="budget_usd" name="budget_usd" type="number" min="0" step="any" placeholder="the usual one" /><//>
    </div>
    <label class="check"><input type="checkbox" name="review" checked /> I review it before it counts as done</label>
  <//>`;
}
