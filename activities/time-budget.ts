import { Context } from '@temporalio/activity';

/** The time that all attempts at a step may take together is used up. */
export class TimeBudgetSpentError extends Error {
  override readonly name = 'TimeBudgetSpentError';

  constructor(what: string, budgetMs: number) {
    super(`${what} took longer than ${Math.round(budgetMs / 60_000)} minutes`);
  }
}

/** Milliseconds that the attempts before this one have used, and since when this one does. */
interface Used {
  readonly before: number;
  begunAt?: number;
}

/** What heartbeats carry to the next attempt. */
interface Details {
  readonly usedMs?: number;
}

const used = new WeakMap<Context, Used>();

/** To be sent with every heartbeat of this activity: the next attempt goes on from the last one's. */
export function budgetDetails(context: Context): Details {
  const { before, begunAt } = usedBy(context);
  return { usedMs: before + (begunAt === undefined ? 0 : performance.now() - begunAt) };
}

/**
 * Does the work within a time for all attempts together. What goes before it, such as the wait for a
 * turn, does not count.
 *
 * @param what for people, as the subject of a sentence.
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
  const time = usedBy(context);
  if (time.before >= budgetMs) throw spent;
  time.begunAt = performance.now();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(spent), budgetMs - time.before);
  const { cancellationSignal } = context;
  try {
    return await work(AbortSignal.any([cancellationSignal, over.signal]));
  } catch (error) {
    if (over.signal.aborted && !cancellationSignal.aborted) throw spent;
    throw error;
  } finally {
    clearTimeout(timer);
    context.heartbeat(budgetDetails(context));
  }
}

function usedBy(context: Context): Used {
  const known = used.get(context);
  if (known) return known;
  // What an attempt before has sent, by this very module.
  const details = context.info.heartbeatDetails as Details | undefined;
  const made = { before: details?.usedMs ?? 0 };
  used.set(context, made);
  return made;
}
