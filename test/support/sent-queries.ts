import pg from 'pg';

/** Statements that timers send: the check of an idle connection, and the extension of reservations. */
const OF_TIMERS = /^SELECT 1$|keep_reservations/;

/** Returns the statements that this process sends to a database, by any pool, during `work`. */
export async function sentQueries(url: string, work: () => Promise<void>): Promise<string[]> {
  const name = new URL(url).pathname.slice(1);
  const { prototype } = pg.Client;
  // Called with its client below, and put back at the end.
  const query = Reflect.get(prototype, 'query') as (...args: unknown[]) => unknown;
  const sent: string[] = [];
  Reflect.set(prototype, 'query', function noted(this: pg.Client, ...args: unknown[]) {
    const [statement] = args;
    const text = typeof statement === 'string' ? statement : JSON.stringify(statement);
    if (this.database === name && !OF_TIMERS.test(text)) sent.push(text);
    return query.apply(this, args);
  });
  try {
    await work();
  } finally {
    Reflect.set(prototype, 'query', query);
  }
  return sent;
}
