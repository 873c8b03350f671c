/** Days (UTC) as `YYYY-MM-DD`, both inclusive. */
export interface Period {
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 86_400_000;

/** Returns the period of the last `count` days, including today. */
export function lastDays(count: number, now: Date): Period {
  return { from: dayOf(now.getTime() - (count - 1) * DAY_MS), to: dayOf(now.getTime()) };
}

/** Returns the period from the first of this calendar month to today. */
export function monthToDate(now: Date): Period {
  const to = dayOf(now.getTime());
  return { from: `${to.slice(0, 8)}01`, to };
}

export function daysOf({ from, to }: Period): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += DAY_MS) days.push(dayOf(at));
  return days;
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
