/** Days (UTC) as `YYYY-MM-DD`, both included. */
export interface Period {
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 86_400_000;

/** Today and the days before it, `count` in all. */
export function lastDays(count: number, now: Date): Period {
  return { from: dayOf(now.getTime() - (count - 1) * DAY_MS), to: dayOf(now.getTime()) };
}

/** From the first of this calendar month until today. */
export function monthToDate(now: Date): Period {
  const to = dayOf(now.getTime());
  return { from: `${to.slice(0, 8)}01`, to };
}

/** Each day of it, the first one first. */
export function daysOf({ from, to }: Period): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += DAY_MS) days.push(dayOf(at));
  return days;
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
