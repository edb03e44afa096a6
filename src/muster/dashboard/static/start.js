// Forms that start work, drawn from the server's own description of its requests; the server checks everything again.
import { createContext, html, useContext, useEffect, useMemo, useRef, useState } from "./html.js";
import { bodyOf, formsOf, groupsOf, placed } from "./forms.js";
import { newKey, post, useGet } from "./http.js";
import { Command, Failure, Loading, sentence, Tabs } from "./parts.js";

const Named = createContext({}); // what can be named, by the form of a field; which agents are people; the usual budget
const Flaws = createContext({}); // what the server said of fields, by their names

export function StartView({ id }) {
  const described = useGet("/openapi.json");
  const agents = useGet("/api/agents");
  const library = useGet("/api/library");
  const forms = useMemo(() => (described.data ? formsOf(described.data) : []), [described.data]);
  const error = described.error ?? agents.error ?? library.error;
  if (error) return html`<h1>Start</h1><${Failure} error=${error} />`;
  if (!described.data || !agents.data || !library.data) return html`<h1>Start</h1><${Loading} what="forms" />`;
  const form = forms.find((one) => one.kind === id) ?? forms[0];
  const named = namedBy(agents.data, library.data);
  return html`<h1>Start</h1>
    <${Tabs} label="What to start" base="#/start" tabs=${forms.map((one) => [one.kind, one.name])} value=${form.kind} />
    ${lacking(form, named) ?? html`<${Named.Provider} value=${named}><${WorkForm} key=${form.kind} form=${form} /><//>`}`;
}

/** Agents that are no people come first, so that a run waits for nobody unless somebody is chosen. */
function namedBy({ agents, run_budget_usd: budget }, { items }) {
  const listed = (kind) => items.filter((one) => one.kind === kind).map((one) => one.name);
  const agent = [...agents].sort((a, b) => a.human - b.human).map((one) => one.name);
  const people = new Set(agents.filter((one) => one.human).map((one) => one.name));
  return { agent, suite: listed("suite"), chain: listed("chain"), council: listed("council"), people, budget };
}

/** What must be declared before this work can be started at all; nothing when it can. */
function lacking({ fields }, named) {
  const field = fields.find((one) => one.required && named[one.form]?.length === 0);
  if (!field) return null;
  const way = field.form === "agent" ? '[serve]\nmodels = ["sim/echo"]' : `[library]\npaths = ["${field.form}s"]`;
  const where = field.form === "agent" ? "Declare one in muster.toml, or list models that requests may name:" : "Put one into a folder that muster.toml names:";
  return html`<div class="notice warn"><p>${`There is no ${field.form} yet that may be named here. ${where}`}</p><${Command} text=${way} /><p>Then start the server again.</p></div>`;
}

/** The form of any work; one key for all tries, so that nothing is started twice. */
function WorkForm({ form }) {
  const [failure, tell] = useState(null);
  const [busy, work] = useState(false);
  const [key, renew] = useState(newKey);
  const place = useRef(null);
  const flaws = failure ? placed(failure, form) : { of: {}, rest: [] };
  useEffect(() => {
    const unfold = (event) => event.target.closest("details")?.setAttribute("open", "");
    place.current.addEventListener("invalid", unfold, true);
    return () => place.current?.removeEventListener("invalid", unfold, true);
  }, []);
  useEffect(() => {
    if (!failure) return;
    for (const field of place.current.querySelectorAll('details [aria-invalid="true"]')) field.closest("details").open = true;
    (place.current.querySelector('[aria-invalid="true"]') ?? place.current.querySelector(".notice"))?.focus();
  }, [failure]);
  const send = async (event) => {
    event.preventDefault();
    const { body, flaws: unread } = bodyOf(form, new FormData(event.target));
    if (unread.length > 0) return tell({ message: "", fields: unread });
    work(true);
    tell(null);
    try {
      const started = await post(form.path, body, key);
      location.hash = `#/${form.place}/${started.id}`;
    } catch (error) {
      tell(error);
      if (error.status >= 400) renew(newKey()); // refused: what is sent next is another request
    }
    work(false);
  };
  return html`<form ref=${place} class="card padded start" onSubmit=${send}>
    <p class="soft">${form.about}</p>
    ${flaws.rest.length > 0 && html`<div tabindex="-1" class="notice bad" role="alert"><p><strong>${sentence(flaws.rest.join("; "))}</strong></p></div>`}
    <${Flaws.Provider} value=${flaws.of}>${groupsOf(form).map(([heading, fields]) => html`<${Group} key=${heading} heading=${heading} fields=${fields} />`)}<//>
    <button class="main" type="submit" disabled=${busy}>${busy ? "Starting …" : form.label}</button>
  </form>`;
}

function Group({ heading, fields }) {
  const inner = html`<div class="fields">${fields.map((field) => html`<${Field} key=${field.name} field=${field} />`)}</div>`;
  if (!heading) return inner;
  return html`<details class="group"><summary>${heading} <span class="soft small">${fields.map((field) => field.label).join(", ")}</span></summary>${inner}</details>`;
}

const ACROSS = new Set(["text", "lines", "json", "checks"]);
const CONTROLS = { text: Area, lines: Area, json: Area, select: Select, number: Input, line: Input };

/** One field with its label, what the server said of it, and what it means. */
function Field({ field }) {
  const flaws = useContext(Flaws)[field.name] ?? [];
  const { name, label, help, control, required } = field;
  const notes = html`${flaws.length > 0 && html`<span class="bad small" role="alert" id=${`${name}-flaw`}>${flaws.map((one) => sentence(one)).join(" ")}</span>`}
    ${help && html`<span class="soft small" id=${`${name}-hint`}>${help}${control === "lines" ? " One in each line." : control === "json" ? " As JSON." : ""}</span>`}`;
  const told = [flaws.length > 0 && `${name}-flaw`, help && `${name}-hint`].filter(Boolean).join(" ");
  const marks = { "aria-invalid": String(flaws.length > 0), "aria-describedby": told || undefined };
  if (control === "checks") return html`<fieldset class="field across" aria-describedby=${marks["aria-describedby"]}><legend>${label}</legend><${Checks} field=${field} invalid=${marks["aria-invalid"]} />${notes}</fieldset>`;
  if (control === "check") return html`<div class="field"><label class="check"><input type="checkbox" id=${name} name=${name} defaultChecked=${field.usual === true} ...${marks} /> <span>${label}</span></label>${notes}</div>`;
  return html`<div class=${ACROSS.has(control) ? "field across" : "field"}><label for=${name}>${label}</label>
    <${CONTROLS[control]} field=${field} id=${name} name=${name} required=${required} ...${marks} />${notes}</div>`;
}

/** What stands in a field until something is filled in. */
function usePlaceholder({ form, shown, usual }) {
  const { budget } = useContext(Named);
  if (form === "budget") return budget === null ? "none" : `${budget}, as usual`;
  return shown || (usual === null || typeof usual === "object" ? "" : String(usual));
}

function Input({ field, ...more }) {
  const { value, control } = field;
  const bounds = control === "number" ? { type: "number", min: value.minimum, max: value.maximum, step: value.type === "integer" ? 1 : "any" } : { maxlength: value.maxLength, pattern: value.pattern };
  return html`<input ...${bounds} ...${more} placeholder=${usePlaceholder(field)} />`;
}

function Area({ field, ...more }) {
  return html`<textarea rows=${field.required ? 4 : 2} maxlength=${field.value.maxLength} ...${more} placeholder=${usePlaceholder(field)}></textarea>`;
}

const called = (name, people) => `${name}${people.has(name) ? " (a person)" : ""}`;

function Select({ field, ...more }) {
  const named = useContext(Named);
  const options = field.options ?? named[field.form];
  const free = !field.required && !options.includes(field.usual);
  return html`<select ...${more}>${free && html`<option value="">${field.shown || "none"}</option>`}
    ${options.map((name) => html`<option key=${name} value=${name} selected=${name === field.usual}>${field.form === "agent" ? called(name, named.people) : name}</option>`)}</select>`;
}

/** Several of what is listed; the first is chosen where one must be. */
function Checks({ field, invalid }) {
  const named = useContext(Named);
  const { name, required } = field;
  return html`<div class="checks">${(field.options ?? named[field.form]).map((one, place) => html`<label key=${one} class="check"><input type="checkbox" name=${name} value=${one} aria-invalid=${invalid}
    defaultChecked=${required && place === 0} /> <span>${field.form === "agent" ? called(one, named.people) : one}</span></label>`)}</div>`;
}
