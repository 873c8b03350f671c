import type { Trace } from '../src/fleet/traces.js';
import type { HistorySpan } from './history-spans.js';

/** Activities between which a supervisor carries out an operation (`workflows/operations.ts`). */
const BEGIN = 'beginOperation';
const END = 'finishOperation';

/** Milliseconds between the end of an operation and its record in the history, with clocks that differ. */
const MAX_DIFFERENCE_MS = 60_000;

/** Returns an operation's spans, in the history of a supervisor that runs one operation at a time. */
export function spansOfOperation(
  spans: readonly HistorySpan[],
  { finishedAt, startedAt }: Pick<Trace, 'startedAt' | 'finishedAt'>,
): readonly HistorySpan[] {
  const ends = spans.flatMap(({ name }, place) => (name === END ? [place] : []));
  if (finishedAt === null) {
    const begun = beginningAfter(spans, ends.at(-1) ?? -1, spans.length);
    return begun === undefined ? [] : spans.slice(begun);
  }
  const distance = (place: number) =>
    Math.abs((spans[place]?.finishedAt?.getTime() ?? Infinity) - finishedAt.getTime());
  const end = ends.toSorted((one, other) => distance(one) - distance(other)).at(0);
  if (end === undefined || distance(end) > MAX_DIFFERENCE_MS) {
    // The supervisor was lost, and another process has recorded the end.
    return spans.filter((span) => span.startedAt >= startedAt && span.startedAt <= finishedAt);
  }
  const before = ends.filter((place) => place < end).at(-1) ?? -1;
  return spans.slice(beginningAfter(spans, before, end) ?? end, end + 1);
}

/** Returns the place of the last beginning between two places. */
function beginningAfter(
  spans: readonly HistorySpan[],
  after: number,
  before: number,
): number | undefined {
  const place = spans.findLastIndex(({ name }, at) => name === BEGIN && at > after && at < before);
  return place < 0 ? undefined : place;
}
