import { afterAll, beforeAll, test } from 'vitest';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { playOrders } from './month.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

test('a month of events ends in the same state in 5 random orders, with repetitions', async () => {
  await playOrders(database, 5);
});
