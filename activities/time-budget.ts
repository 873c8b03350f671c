import { Context } from '@temporalio/activity';

/** The time that all attempts at a step may take together is used up. */
export class TimeBudgetSpentError extends Error {
  override readonly name = 'TimeBudgetSpentError';

  constructor(what: string, budgetMs: number) {
    super(`${what} took longer than ${Math.round(budgetMs / 60_000)} minutes`);
  }
}

/** Docker is there, and refuses a step each time. */
export class LastingRefusalError extends Error {
  override readonly name = 'LastingRefusalError';

  constructor(cause: Error) {
    super('The container engine has refused this step for minutes (ENGINE_REFUSED)', { cause });
  }
}

/** What an attempt, and those before it, have used of each of the activity's budgets. */
interface Used {
  /** Milliseconds by the budget's name, without what is under way. */
  readonly ended: Map<string, number>;
  readonly underWay: Map<string, { readonly begunAt: number }>;
}

/** What heartbeats carry to the next attempt. */
interface Details {
  readonly usedMs?: Readonly<Record<string, number>>;
}

const used = new WeakMap<Context, Used>();

/** To be sent with every heartbeat of this activity: the next attempt goes on from the last one's. */
export function budgetDetails(context: Context): Details {
  const { ended, underWay } = usedBy(context);
  const usedMs = Object.fromEntries(ended);
  for (const [what, { begunAt }] of underWay) {
    usedMs[what] = (usedMs[what] ?? 0) + performance.now() - begunAt;
  }
  return { usedMs };
}

/**
 * Does the work within a time for all attempts together. What goes before it, such as the wait for a
 * turn, does not count.
 *
 * @param what for people, as the subject of a sentence; a budget of its own within the activity.
 * @param work ends soon after its signal has aborted.
 * @throws TimeBudgetSpentError
 */
export async function withinBudget<T>(
  what: string,
  budgetMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const spent = new TimeBudgetSpentError(what, budgetMs);
  const { ended, underWay } = usedBy(context);
  const before = ended.get(what) ?? 0;
  if (before >= budgetMs) throw spent;
  const begunAt = performance.now();
  underWay.set(what, { begunAt });
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(spent), budgetMs - before);
  const { cancellationSignal } = context;
  try {
    return await work(AbortSignal.any([cancellationSignal, over.signal]));
  } catch (error) {
    if (over.signal.aborted && !cancellationSignal.aborted) throw spent;
    throw error;
  } finally {
    clearTimeout(timer);
    underWay.delete(what);
    ended.set(what, before + performance.now() - begunAt);
    context.heartbeat(budgetDetails(context));
  }
}

/** Counts what has happened now, and in the attempts before, under a name that no budget has. */
export function countUp(what: string): number {
  const context = Context.current();
  const { ended } = usedBy(context);
  const count = (ended.get(what) ?? 0) + 1;
  ended.set(what, count);
  context.heartbeat(budgetDetails(context));
  return count;
}

/** What was counted under that name does not count any more. */
export function countAnew(what: string): void {
  const context = Context.current();
  if (usedBy(context).ended.delete(what)) context.heartbeat(budgetDetails(context));
}

function usedBy(context: Context): Used {
  const known = used.get(context);
  if (known) return known;
  // What an attempt before has sent, by this very module.
  const details = context.info.heartbeatDetails as Details | undefined;
  const made = { ended: new Map(Object.entries(details?.usedMs ?? {})), underWay: new Map() };
  used.set(context, made);
  return made;
}
