// Small runs that follow each other stand in one row, which opens: a script that asks a hundred questions hides nothing else.
import { count, LIVE, titleOf, word } from "./format.js";

const LEAST = 3; // runs that are put together
const SMALL = 1; // calls of a run that is told by its kind alone

/** What runs have in common that stand together; null for one that stands alone. */
function keyOf(run) {
  if (LIVE.has(run.state)) return null;
  if (run.name === null && run.calls.total <= SMALL) return `${run.workload}\n`;
  return `${run.workload}\n${titleOf(run)}`;
}

/** The rows of a list: runs, and `{group: [runs], opened}` before those of a group that is opened. */
export function grouped(runs, opened) {
  const rows = [];
  for (let from = 0, to = 0; from < runs.length; from = to) {
    const key = keyOf(runs[from]);
    to = from + 1;
    while (key !== null && to < runs.length && keyOf(runs[to]) === key) to += 1;
    const found = runs.slice(from, to);
    const isOpen = found.some((run) => opened.has(run.id));
    if (found.length >= LEAST) rows.push({ id: `group ${found.at(-1).id}`, group: found, opened: isOpen });
    if (found.length < LEAST || isOpen) rows.push(...found.map((run) => (found.length < LEAST ? run : { ...run, inGroup: true })));
  }
  return rows;
}

/** What a group is called: as its runs are, or by how many of a kind they are. */
export function nameOf(group) {
  const titles = new Set(group.map(titleOf));
  return titles.size === 1 ? [...titles][0] : count(group.length, group[0].kind);
}

/** What became of the runs of a group, the worst first: `[state or tone, words]`. */
export function endingsOf(group) {
  const told = new Map();
  for (const run of group) {
    const [kind, words] = run.verdict ? [`v-${run.verdict.tone}`, { good: "good", bad: "not passed", plain: "done" }[run.verdict.tone]] : [`s-${run.state}`, word(run.state)];
    told.set(words, [kind, (told.get(words)?.[1] ?? 0) + 1]);
  }
  const isGood = (kind) => kind === "s-completed" || kind === "v-good" || kind === "v-plain";
  return [...told].map(([words, [kind, many]]) => ({ kind, words: `${many} ${words}`, good: isGood(kind) })).sort((a, b) => a.good - b.good);
}

const sum = (values) => values.reduce((all, one) => all + one, 0);

/** The figures of a group as if it were one run. */
export function summed(group) {
  const add = (pick) => sum(group.map(pick));
  const money = Object.fromEntries(["cost_usd", "imputed_usd", "uncertain_usd"].map((name) => [name, add((run) => run[name])]));
  return { ...money, lineage: money, budget_usd: null,
    calls: Object.fromEntries(["total", "done", "failed"].map((name) => [name, add((run) => run.calls[name])])) };
}
