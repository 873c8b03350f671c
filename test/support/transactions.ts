import pg from 'pg';
import { vi } from 'vitest';

/**
 * Counts the transactions that this process sends to PostgreSQL while `work` runs, on all connections. A
 * statement outside a transaction counts as one.
 */
export async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  // All statements pass through this method of the driver.
  const spy = vi.spyOn(pg.Client.prototype, 'query');
  try {
    await work();
    const statements = spy.mock.calls.map(([given], i) => ({
      text: textOf(given),
      connection: spy.mock.contexts[i],
    }));
    return countOf(statements);
  } finally {
    spy.mockRestore();
  }
}

function countOf(statements: readonly { text: string; connection: unknown }[]): number {
  const open = new Set<unknown>();
  let count = 0;
  for (const { text, connection } of statements) {
    if (!open.has(connection)) count += 1;
    if (/^(BEGIN|START TRANSACTION)/i.test(text)) open.add(connection);
    if (/^(COMMIT|ROLLBACK)/i.test(text)) open.delete(connection);
  }
  return count;
}

function textOf(statement: unknown): string {
  if (typeof statement === 'string') return statement;
  const isConfig = typeof statement === 'object' && statement !== null && 'text' in statement;
  return isConfig ? String(statement.text) : '';
}
