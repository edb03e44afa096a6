// Lists of any length: only the rows that are seen are in the document, placed along the scroll of the page.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { get } from "./http.js";

const SPARE = 8; // rows above and below what is seen

/** A table of rows of one height. `columns` are names, `cells(item)` the cells; `onEnd` is called near the last row. */
export function Rows({ label, items, columns, cells, height, total, onEnd, href, onOpen, keyOf, kind }) {
  const place = useRef(null);
  const [range, tell] = useState([0, 40]);
  const look = () => {
    const box = place.current?.getBoundingClientRect();
    if (!box) return;
    const first = Math.max(0, Math.floor(-box.top / height) - SPARE);
    const last = Math.min(items.length, Math.ceil((innerHeight - box.top) / height) + SPARE);
    tell((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    if (onEnd && last >= items.length - 2 * SPARE) onEnd();
  };
  useLayoutEffect(look, [items.length, height]);
  useEffect(() => {
    let asked = 0;
    const soon = () => (asked ||= requestAnimationFrame(() => ((asked = 0), look())));
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  });
  const shown = items.slice(range[0], range[1]);
  return html`<div class=${`rows ${kind}`} role="table" aria-label=${label} aria-rowcount=${(total ?? items.length) + 1}>
    <div role="rowgroup"><div class="row head" role="row" aria-rowindex="1">
      ${columns.map(([name, mark]) => html`<span key=${name} role="columnheader" class=${mark}>${name}</span>`)}
    </div></div>
    <div class="body" role="rowgroup" ref=${place} style=${{ height: `${items.length * height}px` }}>
      ${shown.map((item, number) => html`<${Row} key=${keyOf(item)} ...${{ item, cells, height, onOpen, columns }}
        index=${range[0] + number} href=${href?.(item)} />`)}
    </div>
  </div>`;
}

function Row({ item, cells, height, index, href, onOpen, columns }) {
  const open = (event) => {
    if (event.target.closest("a, button")) return;
    event.currentTarget.querySelector("a, button")?.click();
  };
  const [first, ...others] = cells(item);
  const name = href
    ? html`<a class="open" href=${href}>${first}</a>`
    : html`<button type="button" class="open" onClick=${() => onOpen(item)}>${first}</button>`;
  return html`<div class="row" role="row" aria-rowindex=${index + 2} style=${{ top: `${index * height}px`, height: `${height}px` }} onClick=${open}>
    <span role="cell" class=${columns[0][1]}>${name}</span>
    ${others.map((cell, place) => html`<span key=${place} role="cell" class=${columns[place + 1][1]}>${cell}</span>`)}
  </div>`;
}

/** Pages of a list that are loaded when they are needed: `path(after)` asks for one, `field` names its rows. */
export function usePages(path, field, inputs) {
  const [state, tell] = useState({ items: [], next: "", error: null, loaded: false });
  const busy = useRef(null);
  const now = useRef(state);
  now.current = state;

  const load = async (after, change) => {
    if (busy.current) return;
    const mine = (busy.current = new AbortController());
    try {
      const page = await get(path(after), mine.signal);
      if (busy.current === mine) tell((old) => ({ ...change(old, page[field], page.next), error: null, loaded: true }));
    } catch (error) {
      if (error.name !== "AbortError") tell((old) => ({ ...old, error, loaded: true }));
    }
    if (busy.current === mine) busy.current = null;
  };

  useEffect(() => {
    busy.current?.abort();
    busy.current = null;
    load(null, (_, items, next) => ({ items, next }));
    return () => busy.current?.abort();
  }, inputs);

  return {
    ...state,
    more() {
      const { items, next, loaded } = now.current;
      if (loaded && next && items.length) load(next, (old, found, after) => ({ items: [...old.items, ...found], next: after }));
    },
    /** Ask for the first page again; what is new is put in front, what is known is replaced. */
    refresh: (idOf) => load(null, (old, found, next) => merged(old, found, next, idOf)),
    /** Ask again for the page that begins with the first row that may have changed; the order of rows stays. */
    again(mayChange, keyOf) {
      const { items } = now.current;
      const found = items.findIndex(mayChange);
      const from = found === -1 ? items.length : found;
      load(from === 0 ? null : keyOf(items[from - 1]), (old, page, next) => replaced(old, from, page, next));
    },
  };
}

function replaced(old, from, page, next) {
  const rest = old.items.slice(from + page.length);
  return { items: [...old.items.slice(0, from), ...page, ...rest], next: rest.length ? old.next : next };
}

function merged(old, found, next, idOf) {
  const known = new Set(found.map(idOf));
  const rest = old.items.filter((item) => !known.has(idOf(item)));
  const oldest = found.at(-1);
  if (old.items.length <= found.length || !oldest) return { items: found, next };
  const place = old.items.findIndex((item) => idOf(item) === idOf(oldest));
  if (place === -1) return { items: found, next }; // more came than one page holds
  return { items: [...found, ...old.items.slice(place + 1)], next: rest.length ? old.next : next };
}
