import type { Sequelize, Transaction } from 'sequelize';

/** What runs SQL of our own in a transaction. The library's types leave it out. */
export function sequelizeOf(transaction: Transaction): Sequelize {
  return (transaction as Transaction & { readonly sequelize: Sequelize }).sequelize;
}

/** Waits for the lock of that name, and holds it until the transaction ends. */
export async function lockUntilEnd(transaction: Transaction, name: string): Promise<void> {
  await sequelizeOf(transaction).query('SELECT pg_advisory_xact_lock(hashtext($name))', {
    bind: { name },
    transaction,
  });
}
