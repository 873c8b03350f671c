import { DatabaseError, Sequelize } from 'sequelize';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newTable } from '../../src/platform/database/migrations/migration.js';
import { ownedThrough } from '../../src/platform/database/schema/policies.js';
import { roleOf } from '../../src/platform/database/roles.js';
import {
  key,
  selectFrom,
  table,
  text,
  type RowOf,
} from '../../src/platform/database/schema/table.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const Note = table(
  'notes',
  { id: key(text()), userId: text(), text: text() },
  [{ name: 'notes_user', fields: ['user_id'] }],
  ownedThrough('user_id'),
);

const migration = newTable(
  'notes',
  `CREATE TABLE notes (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     text text NOT NULL
   );
   CREATE INDEX notes_user ON notes (user_id);`,
  'SELECT, INSERT, DELETE',
  ownedThrough('user_id'),
);

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const owner = new Sequelize(database.ownerUrl, { logging: false });
  const queryInterface = owner.getQueryInterface();
  const servingRole = roleOf(database.url);
  try {
    await owner.transaction((transaction) =>
      migration({ queryInterface, transaction, servingRole }),
    );
  } finally {
    await owner.close();
  }
});
afterAll(() => database?.close());

const notesOf = (user: string) =>
  database.db.asUser(user).query<RowOf<typeof Note>>(selectFrom(Note));

const note = (by: string, userId: string) =>
  database.db
    .asUser(by)
    .query('INSERT INTO notes VALUES ($id, $userId, $text)', { id: userId, userId, text: 'hello' });

test('a new table shows a tenant only its own rows and refuses rows of another tenant', async () => {
  await note('alice', 'alice');
  await note('bob', 'bob');
  expect(await notesOf('alice')).toEqual([{ id: 'alice', userId: 'alice', text: 'hello' }]);
  await expect(note('alice', 'carol')).rejects.toThrow(DatabaseError);
  expect(await notesOf('carol')).toEqual([]);
});

test('refuses a privilege that is not granted', async () => {
  const change = database.db.asUser('alice').query(`UPDATE notes SET text = ''`);
  await expect(change).rejects.toThrow('permission denied for table notes');
});
