import { median } from '../statistics.js';
import type { Figure } from './figures.js';

/** Maximum loss that counts as equal. */
export const TOLERANCE = 0.05;

/** Figures of one round: of the older commit and of the present state. */
export interface Round {
  readonly before: readonly Figure[];
  readonly now: readonly Figure[];
}

/** One figure in both states. */
export interface Compared extends Pick<Figure, 'table' | 'caption' | 'name'> {
  /** Medians of all rounds; NaN if the state does not print the figure. */
  readonly before: number;
  readonly now: number;
  /** Median of the present state over that of the commit. */
  readonly ratio: number;
  /** Smallest and largest ratio of a round. */
  readonly spread: readonly [number, number];
  /** `unclear` if the medians differ by more than the tolerance, but not every round is worse. */
  readonly verdict: 'worse' | 'unclear' | '';
}

/** Compares all figures of the present state; in each table, CPU times come first. */
export function compare(rounds: readonly Round[]): Compared[] {
  const figures = new Map(
    rounds.flatMap(({ now }) => now.map((each) => [each.key, each] as const)),
  );
  const order = (kind: Figure['kind']) => ['CPU', 'rate', 'other'].indexOf(kind);
  return [...figures.values()]
    .sort((a, b) => a.table - b.table || order(a.kind) - order(b.kind))
    .map((figure) => compareFigure(figure, rounds));
}

function compareFigure({ key, kind, ...figure }: Figure, rounds: readonly Round[]): Compared {
  const valueIn = (list: readonly Figure[]) =>
    list.find((each) => each.key === key)?.value ?? Number.NaN;
  const pairs = rounds.map((round) => ({ before: valueIn(round.before), now: valueIn(round.now) }));
  const before = median(pairs.map((pair) => pair.before));
  const now = median(pairs.map((pair) => pair.now));
  const ratios = pairs.map((pair) => pair.now / pair.before);
  const spread = [Math.min(...ratios), Math.max(...ratios)] as const;
  const ratio = now / before;
  const loss = (value: number) => (kind === 'rate' ? 1 / value : value) - 1;
  const isEachWorse = ratios.every((each) => loss(each) > 0);
  const verdict = !(loss(ratio) > TOLERANCE) ? '' : isEachWorse ? 'worse' : 'unclear';
  const { table, caption, name } = figure;
  return { table, caption, name, before, now, ratio, spread, verdict };
}
