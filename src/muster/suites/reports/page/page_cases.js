/** The table of cases with its filters. */
const PAGE = 200;
const wanted = { text: "", statuses: new Set(), tag: "", subject: "" };
const sorted = { by: "status", up: true };
const KEYS = {
  case: (row) => row.case.toLowerCase(), subject: (row) => row.subject.toLowerCase(), status: (row) => ORDER.indexOf(row.status),
  score: (row) => row.score, seconds: (row) => row.seconds, cost: (row) => row.cost,
};
let shown = data.rows, limit = PAGE;

function drawCases() {
  const section = document.getElementById("cases");
  section.append(data.shown ? make("p", { class: "notice", id: "shown", text: data.shown }) : "");
  const table = make("table", { id: "case-table" }, make("thead", {}, headRow()), make("tbody", { id: "rows" }));
  section.append(make("div", { class: "card" }, filters(), make("div", { class: "scroll" }, table), make("div", { class: "more", id: "more" })));
  refresh();
}

function headRow() {
  const columns = [["case", "Case", ""], ["subject", "Subject", "wide"], ["status", "Status", ""], ["score", "Score", "number"],
    ["seconds", "Time", "number wide"], ["cost", "Cost", "number wide"]];
  if (data.subjects.length < 2) columns.splice(1, 1);
  return make("tr", {}, ...columns.map(([key, text, kind]) =>
    make("th", { class: kind, scope: "col", "data-key": key }, make("button", { type: "button", click: () => sortBy(key), text }))));
}

function sortBy(key) {
  sorted.up = sorted.by === key ? !sorted.up : true;
  sorted.by = key;
  refresh();
}

function filters() {
  const text = make("input", { type: "search", id: "filter-text", placeholder: "Search ids, reasons, answers …", "aria-label": "Search cases",
    input: (event) => { wanted.text = event.target.value.toLowerCase(); refresh(); } });
  const chips = ORDER.filter((status) => data.rows.some((row) => row.status === status)).map(chip);
  return make("div", { class: "filters", role: "search" }, text,
    make("div", { class: "chips", role: "group", "aria-label": "Status" }, ...chips),
    choice("filter-tag", "All tags", "Tag", [...new Set(data.rows.flatMap((row) => row.tags))].sort(), (value) => { wanted.tag = value; }),
    data.subjects.length < 2 ? null
      : choice("filter-subject", "All subjects", "Subject", data.subjects.map((subject) => subject.label), (value) => { wanted.subject = value; }));
}

function chip(status) {
  const count = data.rows.filter((row) => row.status === status).length;
  return make("button", { type: "button", class: `chip c-${status}`, "aria-pressed": "false", "data-status": status,
    text: `${WORDS[status]} ${number(count)}`,
    click: (event) => {
      const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
      event.currentTarget.setAttribute("aria-pressed", String(on));
      if (on) wanted.statuses.add(status); else wanted.statuses.delete(status);
      refresh();
    } });
}

function choice(id, all, label, values, choose) {
  if (!values.length) return null;
  return make("select", { id, "aria-label": label, change: (event) => { choose(event.target.value); refresh(); } },
    make("option", { value: "", text: all }), ...values.map((value) => make("option", { value, text: value })));
}

/** All words of a row in one text, made when it is first searched. */
function words(row) {
  if (row.words === undefined) {
    const spoken = row.epochs.flatMap((epoch) => (epoch.talk || []).filter((message) => message.role !== "system").map((message) => message.text));
    row.words = [row.case, row.suite, row.file, row.why, row.description, ...row.tags, ...spoken].join("\n").toLowerCase();
  }
  return row.words;
}

function fits(row) {
  if (wanted.statuses.size && !wanted.statuses.has(row.status)) return false;
  if (wanted.tag && !row.tags.includes(wanted.tag)) return false;
  if (wanted.subject && row.subject !== wanted.subject) return false;
  return !wanted.text || words(row).includes(wanted.text);
}

function compare(one, other) {
  const key = KEYS[sorted.by], a = key(one), b = key(other);
  if (a === null || b === null) return (a === null) - (b === null); // what has no value stands last both ways
  return (a < b ? -1 : a > b ? 1 : 0) * (sorted.up ? 1 : -1);
}

function refresh() {
  shown = data.rows.filter(fits).sort(compare);
  limit = PAGE;
  for (const head of document.querySelectorAll("#case-table th")) {
    const mine = head.dataset.key === sorted.by;
    if (mine) head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending"); else head.removeAttribute("aria-sort");
  }
  document.getElementById("rows").replaceChildren(...shown.slice(0, limit).map(caseRow));
  drawMore();
}

function drawMore() {
  const more = document.getElementById("more"), left = shown.length - limit;
  const told = `${number(shown.length)} of ${number(data.rows.length)} ${data.rows.length === 1 ? "row" : "rows"}`;
  more.replaceChildren(make("span", { class: "soft small", role: "status", id: "count", text: `${told} ` }));
  if (left > 0) more.append(make("button", { type: "button", class: "plain", text: `Show ${number(Math.min(left, PAGE))} more`, click: showMore }));
}

function showMore() {
  document.getElementById("rows").append(...shown.slice(limit, limit + PAGE).map((row, place) => caseRow(row, limit + place)));
  limit += PAGE;
  drawMore();
}

function caseRow(row, place) {
  const open = () => openCase(place);
  const name = make("button", { type: "button", class: "open", text: row.case, "aria-haspopup": "dialog" });
  const cells = [
    make("td", {}, name, data.subjects.length < 2 ? null : make("div", { class: "soft small thin", text: row.subject }), make("div", { class: "why", text: row.why || row.description }), ...tags(row.tags)),
    make("td", { class: "wide", text: row.subject }),
    make("td", {}, badge(row.status)),
    make("td", { class: "number", text: score(row.score) }),
    make("td", { class: "number wide", text: time(row.seconds) }),
    make("td", { class: "number wide", text: money(row.cost) }),
  ];
  if (data.subjects.length < 2) cells.splice(1, 1);
  return make("tr", { click: open }, ...cells);
}
