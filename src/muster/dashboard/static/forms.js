// Forms as the server describes them: fields of the bodies of requests, with what a person is told of each. Draws nothing.

const LONG = 1000; // characters from which on a text may have several lines
const WRITTEN = ["value", "id", "budget", "run"]; // forms of what people write; any other names something that the server lists

/** Every form that the server has: one for each route whose description says how its work is called. */
export function formsOf(document) {
  const starts = Object.entries(document.paths).filter(([, { post }]) => post?.["x-form"]);
  starts.sort(([, one], [, other]) => one.post["x-form"].order - other.post["x-form"].order);
  return starts.map(([path, { post }]) => ({ ...post["x-form"], path, fields: fieldsOf(post.requestBody.content["application/json"].schema, document) }));
}

const follow = (schema, document) => (schema.$ref ? document.components.schemas[schema.$ref.split("/").pop()] : schema);

function fieldsOf(schema, document) {
  const { properties, required = [] } = follow(schema, document);
  const fields = Object.entries(properties).map(([name, one]) => fieldOf(name, one, required.includes(name), document));
  return fields.filter((field) => field.form !== "id");
}

/** What a value may be without null; a name counts where an object would do as well, and nothing where several types do. */
function plain(schema, document) {
  const branches = (schema.anyOf ?? [schema]).filter((one) => one.type !== "null").map((one) => follow(one, document));
  return branches.length === 1 ? branches[0] : branches.find((one) => one.type === "string") ?? {};
}

function fieldOf(name, schema, required, document) {
  const value = { ...plain(schema, document) };
  const items = value.items && plain(value.items, document);
  const form = schema["x-form"] ?? value["x-form"] ?? items?.["x-form"] ?? "value";
  const field = {
    name, form, required: required || value.minItems > 0, value, items, options: (items ?? value).enum, label: schema.title ?? name, help: schema.description ?? "",
    heading: schema["x-heading"] ?? "", shown: schema["x-shown"] ?? "", usual: schema.default ?? null,
  };
  return { ...field, control: controlOf(field) };
}

function controlOf({ form, value, items, options }) {
  const chosen = options || !WRITTEN.includes(form);
  if (items) return chosen ? "checks" : ["string", "integer", "number"].includes(items.type) ? "lines" : "json";
  if (chosen) return "select";
  if (value.type === "boolean") return "check";
  if (["integer", "number"].includes(value.type)) return "number";
  if (value.type === "string") return value.maxLength >= LONG ? "text" : "line";
  return "json";
}

/** The groups of fields: those without a heading, or under that of the work itself, come first, and what is needed before the rest. */
export function groupsOf({ name, fields }) {
  const groups = new Map([["", []]]);
  for (const field of fields) {
    const heading = field.heading === name || field.form === "budget" ? "" : field.heading;
    groups.set(heading, [...(groups.get(heading) ?? []), field]);
  }
  const last = (field) => (field.required ? 0 : field.control === "json" ? 2 : 1);
  return [...groups].map(([heading, some]) => [heading, some.sort((one, other) => last(one) - last(other))]);
}

/** What is sent: what was filled in and is not as usual; `flaws` says what is not JSON. */
export function bodyOf({ fields }, form) {
  const body = {};
  const flaws = [];
  for (const field of fields) {
    try {
      const value = valueOf(field, form);
      if (value !== null && value !== field.usual) body[field.name] = value;
    } catch (error) {
      flaws.push({ path: field.name, message: `is not JSON: ${error.message}` });
    }
  }
  return { body, flaws };
}

function valueOf({ name, control, items }, form) {
  const text = String(form.get(name) ?? "").trim();
  if (control === "check") return form.get(name) !== null;
  if (control === "checks") return form.getAll(name).length > 0 ? form.getAll(name) : null;
  if (text === "") return null;
  if (control === "number") return Number(text);
  if (control === "json") return JSON.parse(text);
  if (control !== "lines") return text;
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return items.type === "string" ? lines : lines.map(Number);
}

/** What a refusal says of each field of a form, and the rest, which is about none of them. */
export function placed({ message, fields }, form) {
  const of = {};
  const rest = [];
  for (const flaw of fields?.length ? fields : [{ path: "", message }]) {
    const name = flaw.path.split(/[.[]/)[0];
    const words = flaw.path === name ? flaw.message : `${flaw.path} ${flaw.message}`;
    if (form.fields.some((field) => field.name === name)) of[name] = [...(of[name] ?? []), words];
    else rest.push(`${flaw.path} ${flaw.message}`.trim());
  }
  return { of, rest };
}
