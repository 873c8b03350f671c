import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createWeb } from '../../api/web/web.js';
import { publishShippedSkills, SHIPPED_SKILLS } from '../../src/skills/shipped-skills.js';
import { MAX_SKILLS, MAX_SKILL_VERSIONS } from '../../src/skills/skills.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { makeAccount, signIn } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { call, type Answer } from '../support/http.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const ADMIN = 'admin@example.com';

interface Author {
  readonly id: string;
  readonly cookie: string;
}

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let ada: Author;
let bob: Author;
let admin: Author;

beforeAll(async () => {
  database = await testDatabase();
  // Requests come from one address, and most limits count by address.
  alone = await databaseAlone(database, undefined, {
    TRUSTED_PROXIES: '127.0.0.1',
    ADMIN_EMAILS: ADMIN,
  });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  [ada, bob, admin] = [await author('Ada'), await author('Bob'), await author('Root', ADMIN)];
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});

async function author(name: string, email?: string): Promise<Author> {
  const account = await makeAccount(database.db, { email, isAdmin: email === ADMIN });
  await database.db
    .asUser(account.id)
    .query('UPDATE users SET name = $name, email_verified_at = now() WHERE id = $id', {
      name,
      id: account.id,
    });
  return { id: account.id, cookie: await signIn(database.db, account) };
}

/** Each request comes from an address of its own. */
let host = 0;
const from = () => `10.${(host >> 16) & 255}.${(host >> 8) & 255}.${host++ & 255}`;
const ask = (
  user: Author | undefined,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> =>
  call(web.url, method, path, {
    ...(body && { body }),
    headers: { ...(user && { cookie: user.cookie }), 'x-forwarded-for': from() },
  });
const publish = (user: Author, body: object) => ask(user, 'POST', '/api/skills', body);
const list = (user: Author, query = '') => ask(user, 'GET', `/api/skills?${query}`);
const reported = ({ body, status }: Answer) => [status, body.code ?? body.error];
const newName = () => `skill-${randomUUID()}`;
const named = (name: string) => ({ name, description: 'Says it', content: '# Say it' });
const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

test('a skill is created, versioned, listed and read', async () => {
  const name = newName();
  const made = await publish(ada, { ...named(name), tags: ['one', 'two'] });
  const skill = {
    name,
    description: 'Says it',
    author: 'Ada',
    version: 1,
    tags: ['one', 'two'],
    visibility: 'private',
    installs: 0,
    uses: 0,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
  };
  expect([made.status, made.body]).toEqual([201, { skill: { ...skill, content: '# Say it' } }]);
  expect((await list(ada, 'mine=true')).body).toEqual({ skills: [skill], count: 1 });
  const second = await publish(ada, { name, content: '# Say it twice' });
  expect(second.body.skill).toEqual({ ...skill, version: 2, content: '# Say it twice' });
  const third = await publish(ada, { name, tags: [] });
  expect(third.body.skill).toMatchObject({ version: 3, tags: [], content: '# Say it twice' });
  const shown = await publish(ada, { name, visibility: 'public' });
  expect(shown.body.skill).toMatchObject({ version: 3, visibility: 'public' });
  expect((await list(bob, `name=${name}`)).body.skill).toMatchObject({ version: 3, author: 'Ada' });
});

test('the last versions are kept', async () => {
  const name = newName();
  for (let version = 1; version <= MAX_SKILL_VERSIONS + 2; version++) {
    const made = await publish(bob, { ...named(name), content: `# ${version}` });
    expect(made.body.skill.version).toBe(version);
  }
  const rows = await owner(
    `SELECT v.version FROM skill_versions v JOIN skills s ON s.id = v.skill_id
      WHERE s.name = '${name}' ORDER BY 1`,
  );
  expect(rows.map(({ version }) => version)).toEqual(
    Array.from({ length: MAX_SKILL_VERSIONS }, (_, each) => each + 3),
  );
});

test('skills are found by text and tag, page by page', async () => {
  const eve = await author('Eve');
  const names = Array.from({ length: 5 }, newName);
  for (const name of names) {
    await publish(eve, { ...named(name), description: 'Counts SHEEP at night', tags: ['sheep'] });
  }
  const found: string[] = [];
  for (let path: string | undefined = '/api/skills?q=sheep&tag=sheep&mine=true&limit=2'; path;) {
    const { body, headers } = await ask(eve, 'GET', path);
    found.push(...body.skills.map((each: { name: string }) => each.name));
    path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
  }
  expect(found).toEqual(names.toReversed());
  expect((await list(eve, 'q=wolves')).body).toEqual({ skills: [], count: 0 });
  expect((await list(eve, 'tag=shee&mine=true')).body.count).toBe(0);
});

describe('a skill of another user', { tags: 'attack' }, () => {
  test('a private skill of another user looks like an unknown one, by name and in lists', async () => {
    const name = newName();
    await publish(ada, { ...named(name), description: 'A secret description' });
    for (const path of [`/api/skills?name=${name}`, `/api/skills?name=${newName()}`]) {
      expect(reported(await ask(bob, 'GET', path))).toEqual([404, 'Skill not found']);
    }
    expect((await list(bob, 'q=secret')).body.count).toBe(0);
    expect((await list(admin, 'q=secret')).body.count).toBe(0);
    // The name is free for the other's own skill.
    expect((await publish(bob, { ...named(name), visibility: 'public' })).status).toBe(201);
    expect((await list(ada, `name=${name}`)).body.skill.author).toBe('Ada');
    expect(reported(await publish(ada, { name, visibility: 'public' }))).toEqual([
      409,
      'SKILL_NAME_TAKEN',
    ]);
    expect((await publish(ada, { name, content: '# Two' })).body.skill.version).toBe(2);
  });

  test('a public skill is neither changed nor withdrawn, except by administrators', async () => {
    const name = newName();
    await publish(ada, { ...named(name), visibility: 'public' });
    for (const body of [named(name), { name, visibility: 'private' }, { name, tags: ['x'] }]) {
      expect(reported(await publish(bob, body))).toEqual([409, 'SKILL_NAME_TAKEN']);
    }
    const withdrawn = await publish(admin, { name, visibility: 'private' });
    expect([withdrawn.status, withdrawn.body.skill.visibility]).toEqual([201, 'private']);
    expect((await list(bob, `name=${name}`)).status).toBe(404);
    expect((await list(ada, `name=${name}`)).body.skill).toMatchObject({
      version: 1,
      visibility: 'private',
    });
    expect(reported(await publish(admin, { name, visibility: 'private' }))).toEqual([
      404,
      'Skill not found',
    ]);
    const audited = await owner(
      `SELECT actor, user_id FROM audit_log WHERE action = 'skill.publish'
          AND detail ->> 'name' = '${name}' ORDER BY id`,
    );
    expect(audited).toEqual([
      { actor: ada.id, user_id: ada.id },
      { actor: admin.id, user_id: ada.id },
    ]);
  });

  test('only an administrator can make a withdrawn skill public again', async () => {
    const name = newName();
    await publish(ada, { ...named(name), visibility: 'public' });
    await publish(admin, { name, visibility: 'private' });
    const isPublic = { visibility: 'public' };
    for (const body of [isPublic, { content: '# Changed', ...isPublic }]) {
      expect(reported(await publish(ada, { name, ...body }))).toEqual([409, 'SKILL_WITHDRAWN']);
    }
    expect((await publish(ada, { name, content: '# Mended' })).body.skill).toMatchObject({
      ...{ version: 2, visibility: 'private' },
    });
    expect((await list(bob, `name=${name}`)).status).toBe(404);
    expect(reported(await publish(bob, { name, ...isPublic }))).toEqual([
      400,
      'content is required',
    ]);
    expect((await publish(admin, { name, ...isPublic })).body.skill).toMatchObject({
      ...{ version: 2, author: 'Ada', ...isPublic },
    });
    // The author decides again.
    for (const visibility of ['private', 'public']) {
      expect((await publish(ada, { name, visibility })).body.skill.visibility).toBe(visibility);
    }
  });

  test('a withdrawn skill is not restored beside another of its name', async () => {
    const name = newName();
    await publish(ada, { ...named(name), visibility: 'public' });
    await publish(admin, { name, visibility: 'private' });
    expect((await publish(bob, { ...named(name), visibility: 'public' })).status).toBe(201);
    const restored = await publish(admin, { name, visibility: 'public' });
    expect(reported(restored)).toEqual([409, 'SKILL_NAME_TAKEN']);
    expect((await list(ada, `name=${name}`)).body.skill.visibility).toBe('private');
  });

  test.each(['ada@example.com', `0x${'a1'.repeat(20)}`])(
    'the address %s is no author',
    async (name) => {
      const named_ = newName();
      await publish(await author(name), { ...named(named_), visibility: 'public' });
      const shown = await list(bob, `name=${named_}`);
      expect(shown.body.skill.author).toBeNull();
      expect(shown.text).not.toContain(name);
    },
  );

  test('exactly one of fifty authors gets a public name', async () => {
    const name = newName();
    const authors = await Promise.all(Array.from({ length: 50 }, (_, each) => author(`A ${each}`)));
    const answers = await Promise.all(
      authors.map((each) => publish(each, { ...named(name), visibility: 'public' })),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, ...Array.from({ length: 49 }, () => 409)]);
    expect(await owner(`SELECT count(*)::int FROM skills WHERE name = '${name}'`)).toEqual([
      { count: 1 },
    ]);
  });
});

test('exactly one of fifty skills gets the last place, and versions need none', async () => {
  const eve = await author('Eve');
  for (let each = 1; each < MAX_SKILLS; each++) {
    const row = { ...ROWS.skills?.(eve.id, each), user_id: eve.id, name: `full-${each}` };
    await owner(insertSql('skills', row));
  }
  const names = Array.from({ length: 50 }, newName);
  const answers = await Promise.all(names.map((name) => publish(eve, named(name))));
  const refused = answers.filter(({ status }) => status === 409);
  expect([answers.filter(({ status }) => status === 201).length, refused.length]).toEqual([1, 49]);
  expect(refused[0]?.body).toMatchObject({ code: 'SKILLS_FULL', current: 100, limit: 100 });
  const made = names[answers.findIndex(({ status }) => status === 201)] ?? '';
  expect((await publish(await again(eve), { name: made, content: '# Two' })).status).toBe(201);
});

/** Returns the user for a new minute of the limit that counts users. */
async function again({ id }: Author): Promise<Author> {
  return { id, cookie: await signIn(database.db, { id }) };
}

test.each([
  [{ description: 'x', content: 'x' }, 'name'],
  [{ ...named('Upper') }, 'name'],
  [{ ...named('a--b') }, 'name'],
  [{ ...named('a/../b') }, 'name'],
  [{ ...named('x'.repeat(65)) }, 'name'],
  [{ ...named('ok'), description: ' ' }, 'description'],
  [{ ...named('ok'), description: 'x'.repeat(1_001) }, 'description'],
  [{ name: 'ok-1', content: '# x' }, 'description is required'],
  [{ name: 'ok-1', description: 'x' }, 'content is required'],
  [{ name: 'ok-1' }, 'content is required'],
  [{ name: 'ok-1', visibility: 'public' }, 'content is required'],
  [{ ...named('ok'), content: '' }, 'content'],
  [{ ...named('ok'), content: 'x'.repeat(40_001) }, 'content must be at most 40000 bytes'],
  [{ ...named('ok'), content: '---\nname: other\n---\nx' }, 'content must not name another skill'],
  [{ ...named('ok'), tags: Array.from({ length: 11 }, String) }, 'tags'],
  [{ ...named('ok'), tags: ['x'.repeat(33)] }, 'tags'],
  [{ ...named('ok'), tags: [''] }, 'tags'],
  [{ ...named('ok'), visibility: 'secret' }, 'visibility'],
])('%o is a 400 that names the field', async (body, text) => {
  const eve = await author('Eve');
  const refused = await publish(eve, body);
  expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(text)]);
  expect((await list(eve, 'mine=true')).body.count).toBe(0);
});

test.each(['booking-settlement', 'instant-split'])('the name %s is taken', async (name) => {
  expect(reported(await publish(ada, named(name)))).toEqual([409, 'SKILL_NAME_TAKEN']);
});

test('shipped skills are published once, again after a change, and never in place of skills of a user', async () => {
  const eve = await author('Eve');
  const [taken = '', ...rest] = SHIPPED_SKILLS;
  await publish(eve, { ...named(taken), visibility: 'public' });
  await Promise.all([1, 2, 3].map(() => publishShippedSkills(database.db, alone.dependencies.log)));
  const versions = `SELECT name, version FROM skills WHERE user_id = 'operator' ORDER BY name`;
  expect(await owner(versions)).toEqual(rest.toSorted().map((name) => ({ name, version: 1 })));
  await owner(`UPDATE skill_versions SET content = 'of an earlier release' WHERE user_id = 'operator'
      AND skill_id = (SELECT id FROM skills WHERE user_id = 'operator' AND name = '${rest[0]}')`);
  await owner(
    `UPDATE skills SET visibility = 'private' WHERE user_id = 'operator' AND name = '${rest[0]}'`,
  );
  await publishShippedSkills(database.db, alone.dependencies.log);
  expect(
    await owner(
      `SELECT version, visibility FROM skills WHERE user_id = 'operator' AND name = '${rest[0]}'`,
    ),
  ).toEqual([{ version: 2, visibility: 'private' }]);
});
