import { Context } from '@temporalio/activity';

export class TimeBudgetSpentError extends Error {
  override readonly name = 'TimeBudgetSpentError';

  constructor(what: string, budgetMs: number) {
    super(`${what} took longer than ${Math.round(budgetMs / 60_000)} minutes`);
  }
}

/** Docker answers, but refuses a step each time. */
export class LastingRefusalError extends Error {
  override readonly name = 'LastingRefusalError';

  constructor(cause: Error) {
    super('The container engine has refused this step for minutes (DOCKER_REFUSED)', { cause });
  }
}

/** Time and counts that this and earlier attempts used of each of the activity's budgets. */
interface Used {
  /** Milliseconds by the budget's name, without work in flight. */
  readonly ended: Map<string, number>;
  readonly running: Map<string, { readonly begunAt: number }>;
}

/** Heartbeat details for the next attempt. */
interface Details {
  readonly usedMs?: Readonly<Record<string, number>>;
}

const used = new WeakMap<Context, Used>();

/** Returns the details for every heartbeat of this activity: the next attempt continues from the last one. */
export function budgetDetails(context: Context): Details {
  const { ended, running } = usageOf(context);
  const usedMs = Object.fromEntries(ended);
  for (const [what, { begunAt }] of running) {
    usedMs[what] = (usedMs[what] ?? 0) + performance.now() - begunAt;
  }
  return { usedMs };
}

/**
 * Runs work within a time limit for all attempts together, without earlier phases such as the wait for a
 * turn. `what` names the budget, as the subject of the error. `work` ends soon after its signal has aborted.
 * @throws TimeBudgetSpentError
 */
export async function withinBudget<T>(
  what: string,
  budgetMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const spent = new TimeBudgetSpentError(what, budgetMs);
  const { ended, running } = usageOf(context);
  const before = ended.get(what) ?? 0;
  if (before >= budgetMs) throw spent;
  const begunAt = performance.now();
  running.set(what, { begunAt });
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
    running.delete(what);
    ended.set(what, before + performance.now() - begunAt);
    context.heartbeat(budgetDetails(context));
  }
}

/** Counts an event over this and earlier attempts, under a name that no budget uses. */
export function incrementCounter(what: string): number {
  const context = Context.current();
  const { ended } = usageOf(context);
  const count = (ended.get(what) ?? 0) + 1;
  ended.set(what, count);
  context.heartbeat(budgetDetails(context));
  return count;
}

export function resetCounter(what: string): void {
  const context = Context.current();
  if (usageOf(context).ended.delete(what)) context.heartbeat(budgetDetails(context));
}

function usageOf(context: Context): Used {
  const known = used.get(context);
  if (known) return known;
  // Written by an earlier attempt of this module.
  const details = context.info.heartbeatDetails as Details | undefined;
  const made = { ended: new Map(Object.entries(details?.usedMs ?? {})), running: new Map() };
  used.set(context, made);
  return made;
}
