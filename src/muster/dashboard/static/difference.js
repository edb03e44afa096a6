// Word by word, what was taken out of one text and put into another.
const MOST_WORDS = 1500; // of a text; beyond, lines are compared

/** Return the pieces of both texts: `{before: [[kind, text]], after: [[kind, text]]}`, kind "same", "out" or "in". */
export function differences(before, after) {
  const cut = [before, after].some((text) => text.length > 8 * MOST_WORDS) ? /(\n)/ : /(\s+)/;
  const a = before.split(cut).filter((word) => word !== "");
  const b = after.split(cut).filter((word) => word !== "");
  return spelled(a, b, telling(matches(a, b), a, b));
}

const LEAST = 4; // letters that must agree between two differences: a lone "it" is chance

/** The matches without stretches that are too short to mean anything; those at the ends stay. */
function telling(pairs, a, b) {
  const stretches = [];
  for (const pair of pairs) {
    const last = stretches.at(-1)?.at(-1);
    if (last && pair[0] === last[0] + 1 && pair[1] === last[1] + 1) stretches.at(-1).push(pair);
    else stretches.push([pair]);
  }
  const isEnd = ([[i, j]], last) => (i === 0 && j === 0) || (last[0] === a.length - 1 && last[1] === b.length - 1);
  return stretches.filter((one) => isEnd(one, one.at(-1)) || one.map(([i]) => a[i]).join("").replace(/\s/g, "").length >= LEAST).flat();
}

/** The longest common subsequence of what lies between the common beginning and end. */
function matches(a, b) {
  let begin = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin += 1;
  let end = 0;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const pairs = Array.from({ length: begin }, (_, place) => [place, place]);
  const rows = a.length - begin - end;
  const columns = b.length - begin - end;
  if (rows * columns <= 4_000_000) pairs.push(...common(a.slice(begin, begin + rows), b.slice(begin, begin + columns)).map(([i, j]) => [i + begin, j + begin]));
  for (let place = end; place > 0; place -= 1) pairs.push([a.length - place, b.length - place]);
  return pairs;
}

function common(a, b) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

function spelled(a, b, pairs) {
  const before = [];
  const after = [];
  const push = (list, kind, text) => {
    if (text === "") return;
    if (list.at(-1)?.[0] === kind) list.at(-1)[1] += text;
    else list.push([kind, text]);
  };
  let [i, j] = [0, 0];
  for (const [m, n] of [...pairs, [a.length, b.length]]) {
    push(before, "out", a.slice(i, m).join(""));
    push(after, "in", b.slice(j, n).join(""));
    if (m < a.length) push(before, "same", a[m]);
    if (n < b.length) push(after, "same", b[n]);
    [i, j] = [m + 1, n + 1];
  }
  return { before, after };
}
