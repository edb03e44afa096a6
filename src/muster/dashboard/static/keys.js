// Keys that go from row to row, from case to case, and to the search field; those of what lies on top are asked first.
import { html, useEffect, useRef } from "./html.js";

const layers = [];
const TYPED = "input, textarea, select, [contenteditable]";

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.target.closest?.(TYPED)) return;
  for (const { current } of layers.toReversed()) {
    if (current[event.key]) {
      event.preventDefault();
      current[event.key]();
      return;
    }
    if (current.covers?.()) return; // what lies below a panel is left alone
  }
});

/** Act on keys while a component is there: `{key: act}`, with `covers` that tells whether nothing below it is to act. */
export function useKeys(keys) {
  const now = useRef(keys);
  now.current = keys;
  useEffect(() => {
    layers.push(now);
    return () => layers.splice(layers.indexOf(now), 1);
  }, []);
}

/** Go to the first field of the page that searches. */
export const toSearch = () => document.querySelector("main input[type=search]")?.focus();

/** Go from the row that has the focus to one beside it; without one, to the first that is seen. */
export function toRow(body, step) {
  const rows = [...body.children];
  const from = rows.findIndex((row) => row.contains(document.activeElement));
  const first = rows.findIndex((row) => row.getBoundingClientRect().top >= 54); // below the head of the page
  rows[from === -1 ? first : from + step]?.querySelector("a, button")?.focus();
}

/** What the keys do, where there is a keyboard. */
export const Keys = ({ next = "next and previous", search = true }) => html`<span class="keys soft small"><kbd>j</kbd> <kbd>k</kbd> ${next}${search && html` <kbd>/</kbd> search`}</span>`;
