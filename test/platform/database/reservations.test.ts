import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { violates } from '../../../src/platform/database/constraints.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  for (const user of ['alice', 'bob']) {
    await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(user, 1) ?? {}));
  }
});

afterAll(async () => {
  await database.close();
});

interface Reservation {
  user?: string;
  name?: string;
  subdomain?: string;
  port?: number;
  host?: string;
  desired?: 'running' | 'deleted';
  deletedAt?: Date;
}

/** Creates an agent that is unique except for the given values. */
const reserve = ({ user = 'alice', ...given }: Reservation) =>
  database.db.asUser(user).transaction((db) => {
    const id = randomUUID();
    const place = { name: id, subdomain: id, ...given };
    const kind = { plan: 'solo', model: 'provider/model', aiProvider: 'provider' } as const;
    return db.Agent.create({ id, userId: user, ...kind, ...place });
  });

/** Runs two reservations concurrently; counts the winners and the refusals by the index. */
async function race(first: Reservation, second: Reservation, index: string) {
  const outcomes = await Promise.allSettled([reserve(first), reserve(second)]);
  const lost = outcomes.filter((outcome) => outcome.status === 'rejected');
  return {
    won: outcomes.length - lost.length,
    refusedByIndex: lost.filter(({ reason }) => violates(reason, index)).length,
  };
}

const ONE_WINS = { won: 1, refusedByIndex: 1 };
const BOTH_WIN = { won: 2, refusedByIndex: 0 };

describe('two simultaneous reservations', () => {
  test('one of two reservations of a port on one host wins, also between two users', async () => {
    const port = 19_101;
    expect(await race({ port }, { port, user: 'bob' }, 'agents_host_port_key')).toEqual(ONE_WINS);
  });

  test('two reservations of a port on two hosts both win', async () => {
    const port = 19_102;
    expect(await race({ port }, { port, host: 'other' }, 'agents_host_port_key')).toEqual(BOTH_WIN);
  });

  test('one of two reservations of a name by one user wins', async () => {
    const name = 'taken';
    expect(await race({ name }, { name }, 'agents_user_name_key')).toEqual(ONE_WINS);
  });

  test('two reservations of a name by two users both win', async () => {
    const name = 'shared';
    expect(await race({ name }, { name, user: 'bob' }, 'agents_user_name_key')).toEqual(BOTH_WIN);
  });

  test('one of two reservations of a subdomain wins, also between two users', async () => {
    const subdomain = 'taken';
    expect(await race({ subdomain }, { subdomain, user: 'bob' }, 'agents_subdomain_key')).toEqual(
      ONE_WINS,
    );
  });
});

describe('a deleted agent', () => {
  test('a deleted agent frees its name as soon as its deletion is desired', async () => {
    await reserve({ name: 'again', desired: 'deleted' });
    await expect(reserve({ name: 'again' })).resolves.toBeDefined();
  });

  test('a deleted agent keeps its subdomain until its removal is complete', async () => {
    await reserve({ subdomain: 'kept', desired: 'deleted' });
    await expect(reserve({ subdomain: 'kept' })).rejects.toThrow();
    await reserve({ subdomain: 'freed', desired: 'deleted', deletedAt: new Date() });
    await expect(reserve({ subdomain: 'freed' })).resolves.toBeDefined();
  });
});

test('agents without a port do not conflict', async () => {
  await reserve({});
  await expect(reserve({})).resolves.toMatchObject({ desired: 'running', status: 'pending' });
});
