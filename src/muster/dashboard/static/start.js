// Forms that start work. Agents and suites are those that the operator declared; the server checks everything again.
import { createContext, html, useContext, useEffect, useRef, useState } from "./html.js";
import { newKey, post, useGet } from "./http.js";
import { Command, Failure, Loading, sentence, Tabs } from "./parts.js";

const KINDS = [["battle", "Battle"], ["scale", "Scale test"], ["suite", "Suite"], ["council", "Council"], ["task", "Task"]];

export function StartView({ id }) {
  const agents = useGet("/api/agents");
  const library = useGet("/api/library");
  const kind = KINDS.some(([name]) => name === id) ? id : "battle";
  const error = agents.error ?? library.error;
  const named = agents.data?.agents ?? [];
  const names = [...named].sort((a, b) => a.human - b.human).map((one) => one.name); // whom a run does not wait for comes first
  const people = new Set(named.filter((one) => one.human).map((one) => one.name));
  const listed = (wanted) => library.data.items.filter((one) => one.kind === wanted).map((one) => one.name);
  return html`<h1>Start</h1>
    <${Tabs} label="What to start" base="#/start" tabs=${KINDS} value=${kind} />
    ${error && html`<${Failure} error=${error} />`}
    ${!error && (!agents.data || !library.data) && html`<${Loading} what="agents" />`}
    ${agents.data && names.length === 0 && html`<div class="notice warn"><p>No agent may be named here yet. Declare one in muster.toml, or list models that requests may name:</p>
      <${Command} text=${'[serve]\nmodels = ["sim/echo"]'} /><p>Then start the server again.</p></div>`}
    ${names.length > 0 && library.data && html`<${UsualBudget.Provider} value=${agents.data.run_budget_usd}><${People.Provider} value=${people}>
      ${kind === "battle" && html`<${BattleForm} agents=${names} />`}
      ${kind === "scale" && html`<${ScaleForm} agents=${names} />`}
      ${kind === "suite" && html`<${SuiteForm} agents=${names} suites=${listed("suite")} />`}
      ${kind === "council" && html`<${CouncilForm} agents=${names} policies=${listed("council")} />`}
      ${kind === "task" && html`<${TaskForm} agents=${names} />`}<//><//>`}`;
}

const People = createContext(new Set()); // agents that are persons
const UsualBudget = createContext(null); // of a run, in dollars
const Wrong = createContext({}); // what the server said of fields, by their names

const CALLED = { runs: "runCount" }; // what a field is called by whoever checks it

// Of what a message is that does not name its field, and what is better said there.
const ABOUT = [[/^no agent given/, "agents", "Choose at least one agent."], [/a council has from/, "agents"], [/ needs a judge/, "judge"], [/^no slot of the pool fits/, "role"]];

/** Cut what the server said into what it says of fields of this form, and the rest. */
function blame(message, fields) {
  const found = { of: {}, rest: [] };
  for (const part of message.split(/; (?=body )/)) {
    const [, name, words] = part.match(/^body (\w+)[^:]*: (.*)$/s) ?? part.match(/^(\w+) ((?:must|is|has|cannot) .*)$/s) ?? [];
    const about = ABOUT.find(([pattern]) => pattern.test(part));
    const field = about?.[1] ?? CALLED[name] ?? name;
    if (fields.has(field)) found.of[field] = about?.[2] ?? sentence(words ?? part.replace(/^not a valid spec of a \w+: /, ""));
    else found.rest.push(part);
  }
  return found;
}

/** A form whose fields are sent under their names; one key for all tries, so that nothing is started twice. */
function StartForm({ about, submit, label, children }) {
  const [failure, tell] = useState(null);
  const [busy, work] = useState(false);
  const [key, renew] = useState(() => newKey());
  const place = useRef(null);
  const said = failure ? blame(failure.message, new Set([...place.current.elements].map((one) => one.name))) : { of: {}, rest: [] };
  useEffect(() => {
    for (const field of place.current.elements) field.setAttribute("aria-invalid", String(field.name in said.of));
    place.current.querySelector('[aria-invalid="true"]')?.focus();
  }, [failure]);
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
  return html`<form ref=${place} class="card padded start" onSubmit=${send}>
    <p class="soft">${about}</p><${Wrong.Provider} value=${said.of}>${children}<//>
    ${said.rest.length > 0 && html`<${Failure} error=${{ message: said.rest.join("; ") }} />`}
    <button class="main" type="submit" disabled=${busy}>${busy ? "Starting …" : label}</button>
  </form>`;
}

function Field({ id, label, hint, children }) {
  const wrong = useContext(Wrong)[id];
  return html`<div class="field"><label for=${id}>${label}</label>${children}
    ${wrong && html`<span class="bad small" role="alert">${wrong}</span>`}
    ${hint && html`<span class="soft small" id=${`${id}-hint`}>${hint}</span>`}</div>`;
}

const hinted = (id, hint) => ({ id, name: id, "aria-describedby": hint && `${id}-hint` });

/** A field of one line, and one of several. */
const Input = ({ id, label, hint, ...more }) => html`<${Field} id=${id} label=${label} hint=${hint}><input ...${hinted(id, hint)} ...${more} /><//>`;
const Area = ({ id, label, hint, ...more }) => html`<${Field} id=${id} label=${label} hint=${hint}><textarea rows="2" ...${hinted(id, hint)} ...${more}></textarea><//>`;

function Checks({ name, label, options, first }) {
  const people = useContext(People);
  const wrong = useContext(Wrong)[name];
  return html`<fieldset class="field"><legend>${label}</legend>
    <div class="checks">${options.map((one, place) => html`<label key=${one} class="check"><input type="checkbox" name=${name} value=${one} defaultChecked=${first && place === 0} /> <span>${one}${people.has(one) ? " (a person)" : ""}</span></label>`)}</div>
    ${wrong && html`<span class="bad small" role="alert">${wrong}</span>`}</fieldset>`;
}

function AgentSelect({ id, label, hint, agents, none }) {
  const people = useContext(People);
  return html`<${Field} id=${id} label=${label} hint=${hint}><select ...${hinted(id, hint)} required=${!none}>${none && html`<option value="">${none}</option>`}
    ${agents.map((name) => html`<option key=${name} value=${name}>${name}${people.has(name) ? " (a person)" : ""}</option>`)}</select><//>`;
}

/** Without an amount a run has the budget of muster.toml, if that has one, and a task that of the pool. */
function Budget({ id, none }) {
  const usual = useContext(UsualBudget);
  return html`<${Input} id=${id} label="Budget in dollars" type="number" min="0" step="any" placeholder=${none ?? (usual === null ? "no limit" : `${usual}, as usual`)} />`;
}

/** Start something, and go to where it is seen. */
async function begin(path, body, key, place = "runs") {
  const started = await post(path, body, key);
  location.hash = `#/${place}/${started.id}`;
}

/** Fields that were filled in, numbers as numbers. */
function filled(form, names, numbers = []) {
  const found = names.map((name) => [name, String(form.get(name) ?? "").trim()]).filter(([, value]) => value !== "");
  return Object.fromEntries(found.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value]));
}

/** The two sides, what they talk about and who decides: of a battle, and of each battle of a scale test. */
function BattleFields({ agents, children }) {
  return html`<div class="fields">
      <${AgentSelect} id="agentId" label="Agent under test" agents=${agents} />
      <${AgentSelect} id="counterpart" label="Counterpart" agents=${agents} none="the agent plays both parts" />
    </div>
    <${Area} id="goal" label="Goal" hint="Without a goal it is played to its limit." />
    <${Area} id="userMessage" label="First message" hint="Else the goal, else “Begin.”" />
    <${Area} id="systemPrompt" label="System prompt of the agent under test" />
    <div class="fields">
      <${AgentSelect} id="judge" label="Judge" agents=${agents} none="default judge" />
      <${Input} id="messageLimit" label="Maximum turns" type="number" min="1" max="25" defaultValue="10" />
      ${children}
      <${Budget} id="budgetUsd" />
    </div>`;
}

const BATTLE_FIELDS = ["agentId", "counterpart", "goal", "userMessage", "systemPrompt", "judge", "messageLimit", "budgetUsd"];

function BattleForm({ agents }) {
  const submit = (form, key) => begin("/api/battles/start", filled(form, BATTLE_FIELDS, ["messageLimit", "budgetUsd"]), key);
  return html`<${StartForm} about="Two agents talk, turn by turn, until the one under test has reached a goal or the limit." label="Start the battle" submit=${submit}>
    <${BattleFields} agents=${agents} /><//>`;
}

function ScaleForm({ agents }) {
  const submit = (form, key) => {
    const numbers = ["messageLimit", "budgetUsd", "runCount", "concurrency", "minGoalRate"];
    const body = filled(form, [...BATTLE_FIELDS, ...numbers], numbers);
    return begin("/api/scale/start", { ...body, tryRevised: form.get("tryRevised") !== null }, key);
  };
  return html`<${StartForm} about="Many battles of one kind: how often the goal is reached, with an interval, how long it takes, what it costs, and which prompt might do better." label="Start the scale test" submit=${submit}>
    <${BattleFields} agents=${agents}>
      <${Input} id="runCount" label="Battles" hint="As many as the operator allows." type="number" min="1" defaultValue="10" />
      <${Input} id="concurrency" label="At a time" type="number" min="1" placeholder="the usual number" />
      <${Input} id="minGoalRate" label="Least share of goals to pass" type="number" min="0" max="1" step="any" placeholder="none" />
    <//>
    <label class="check"><input type="checkbox" name="tryRevised" /> Play the revised prompt too, and compare</label>
  <//>`;
}

function CouncilForm({ agents, policies }) {
  const submit = (form, key) => {
    const numbers = ["rounds", "effort", "budget_usd"];
    const body = filled(form, ["question", "policy", "synthesis", "baseline", "name", ...numbers], numbers);
    return begin("/api/councils", { ...body, agents: form.getAll("agents") }, key);
  };
  return html`<${StartForm} about="Agents propose answers, weigh each other's proposals, and stop when they are convinced." label="Ask the council" submit=${submit}>
    <${Area} id="question" label="Question" rows="4" required />
    <${Checks} name="agents" label="Members, two at least" options=${agents} />
    <div class="fields">
      ${policies.length > 0 && html`<${Field} id="policy" label="Policy" hint="A council of the library; who is chosen here joins its members."><select id="policy" name="policy" aria-describedby="policy-hint">
        <option value="">none</option>${policies.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select><//>`}
      <${AgentSelect} id="synthesis" label="Synthesis by" hint="By nobody, the best proposal stands." agents=${agents} none="nobody" />
      <${AgentSelect} id="baseline" label="Compared with" agents=${agents} none="nobody" />
    </div>
    <div class="fields">
      <${Input} id="rounds" label="Most rounds" type="number" min="1" max="100" placeholder="3" />
      <${Input} id="effort" label="Effort" hint="From 0, soon convinced, to 1." type="number" min="0" max="1" step="any" placeholder="0.6" />
      <${Budget} id="budget_usd" />
      <${Input} id="name" label="Name" placeholder="which-database" />
    </div>
  <//>`;
}

function SuiteForm({ agents, suites }) {
  if (suites.length === 0) {
    return html`<div class="notice warn"><p>The library has no suite yet. Put one into a folder that muster.toml names:</p><${Command} text=${'[library]\npaths = ["suites"]'} /></div>`;
  }
  const submit = (form, key) => {
    const body = filled(form, ["judge", "epochs", "budget_usd", "name", "filter"], ["epochs", "budget_usd"]);
    return begin("/api/suites/start", { ...body, suites: form.getAll("suites"), agents: form.getAll("agents") }, key);
  };
  return html`<${StartForm} about="Every case of the suites is put to every agent that is chosen, and judged." label="Start the suite" submit=${submit}>
    <${Checks} name="suites" label="Suites" options=${suites} first />
    <${Checks} name="agents" label="Agents" options=${agents} />
    <div class="fields">
      <${AgentSelect} id="judge" label="Judge" agents=${agents} none="that of the suite" />
      <${Input} id="filter" label="Only cases" hint="A pattern of their ids, like help-desk/*." placeholder="all" />
      <${Input} id="epochs" label="Epochs" type="number" min="1" max="1000" placeholder="1" />
      <${Budget} id="budget_usd" />
      <${Input} id="name" label="Name" placeholder="nightly" />
    </div>
  <//>`;
}

function TaskForm({ agents }) {
  const submit = (form, key) => {
    const body = filled(form, ["prompt", "agent", "role", "budget_usd"], ["budget_usd"]);
    return begin("/api/tasks", { ...body, review: form.get("review") !== null }, key, "tasks");
  };
  return html`<${StartForm} about="A CLI agent works on the task in a slot of the pool." label="Submit the task" submit=${submit}>
    <${Area} id="prompt" label="What is to be done" rows="5" required />
    <div class="fields">
      <${AgentSelect} id="agent" label="Agent" agents=${agents} none="that of the slot" />
      <${Input} id="role" label="Role of the slot" placeholder="any" />
      <${Budget} id="budget_usd" none="that of the pool" />
    </div>
    <label class="check"><input type="checkbox" name="review" defaultChecked /> I review it before it counts as done</label>
  <//>`;
}
