// Measures whether response times reveal which accounts exist, sign-ins over bare scrypt, and key
// validation over a bare Koa handler with the same queries.
import { randomBytes, randomUUID, scrypt } from 'node:crypto';
import { parseArgs, promisify } from 'node:util';
import { createApiKey } from '../src/accounts/accounts/api-keys.js';
import { hashPassword } from '../src/accounts/accounts/password.js';
import { PASSWORD_COST } from '../src/accounts/accounts/hash-cost.js';
import { Database } from '../src/platform/database/database.js';
import { makeMailToken } from '../src/accounts/mail/mail-tokens.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { Client } from './support/client.js';
import { measureLoad, type Round } from './support/measured-load.js';
import { BenchPlatform } from './support/platform.js';
import { usageOf } from './support/process-tree.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Range for the median time of known addresses over that of unknown ones. */
const AIM_RATIO = '0.95 to 1.05';
/** Minimum shares of the bare rate. */
const AIM_SIGN_INS = 0.9;
const AIM_VALIDATION = 0.8;

/** Hashed at a time by one process (src/accounts/accounts/hashing-limiters.ts). */
const AT_ONCE = 2;

const PASSWORD = 'a-password-of-benchmarks';

const { values: options } = parseArgs({
  options: {
    /** Requests of each kind, for known addresses and as many for unknown ones. */
    answers: { type: 'string', default: '200' },
    /** Sign-ins in each round. */
    signins: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    warmup: { type: 'string', default: '10' },
    connections: { type: 'string', default: '16' },
  },
});

interface Account {
  readonly id: string;
  readonly email: string;
}

await runBenchmark(async (atEnd) => {
  const platform = await BenchPlatform.withoutContainers(atEnd);
  const database = new Database(platform.databaseUrl, { maxConnections: 2 });
  atEnd(() => database.close());
  const web = new Client(platform.webUrl, {});
  atEnd(() => web.close());

  const known = await accounts(database, Number(options.answers));
  await printRatio(web, database, known);
  printTable(
    ['way', 'a second', "server's CPU, µs each", 'share of bare', 'aim'],
    [
      ...(await signIns(platform, web, await accounts(database, Number(options.signins)))),
      ...(await validations(platform, web, database, atEnd)),
    ],
  );
});

/** Creates accounts as registration does, but with one shared hash: separate hashes would take minutes. */
async function accounts(database: Database, count: number): Promise<Account[]> {
  const passwordHash = await hashPassword(PASSWORD, 'benchmark');
  const made = Array.from({ length: count }, () => {
    const id = randomUUID();
    const email = `${id}@example.org`;
    return { id, email, name: email, passwordHash, referralCode: id.toUpperCase() };
  });
  await database.asPlatform().transaction((db) => db.User.bulkCreate(made));
  return made;
}

/**
 * Sends requests for known and unknown addresses in turns, each address once per path: rate limits count
 * by account.
 */
async function printRatio(web: Client, database: Database, known: readonly Account[]) {
  const used = await database.asPlatform().transaction(async (db) => {
    const tokens: string[] = [];
    for (const { email, id: userId } of known) {
      const account = { email, userId };
      tokens.push(await makeMailToken(db, 'reset-password', account));
      // The newer token invalidates the first one.
      await makeMailToken(db, 'reset-password', account);
    }
    return tokens;
  });
  const asked = [
    {
      path: '/api/auth/login',
      body: (email: string) => ({ email, password: 'another-password' }),
      status: 401,
    },
    { path: '/api/auth/forgot-password', body: (email: string) => ({ email }), status: 200 },
    {
      path: '/api/auth/reset-password',
      body: (_email: string, index: number, isKnown: boolean) => ({
        token: isKnown ? used[index] : randomBytes(32).toString('base64url'),
        password: 'another-password',
      }),
      status: 400,
    },
  ];
  const took = asked.map(() => ({ known: [] as number[], unknown: [] as number[] }));
  for (const [index, { email }] of known.entries()) {
    // One path after the other for each address: a reset mail is sent before the next one.
    for (const [way, { body, path, status }] of asked.entries()) {
      const turns = [
        { isKnown: true, who: email },
        { isKnown: false, who: `${randomUUID()}@example.org` },
      ];
      // Alternating order, so that neither kind always comes second.
      for (const { isKnown, who } of index % 2 === 0 ? turns : turns.toReversed()) {
        const sent = performance.now();
        const answer = await web.send('POST', path, body(who, index, isKnown));
        took[way]?.[isKnown ? 'known' : 'unknown'].push(performance.now() - sent);
        if (answer.status !== status) throw new Error(`${path}: ${answer.status} ${answer.text}`);
      }
    }
  }
  const rows = asked.map(({ path }, way) => {
    const [ofKnown, ofUnknown] = [median(took[way]?.known ?? []), median(took[way]?.unknown ?? [])];
    return [path, figure(ofKnown), figure(ofUnknown), figure(ofKnown / ofUnknown), AIM_RATIO];
  });
  console.log(`\nMedians of ${known.length} answers each, in turns, in ms:\n`);
  printTable(['way', 'known address', 'unknown', 'known over unknown', 'aim'], rows);
}

/** Measures sign-ins a second over bare scrypt, with as many in flight as the service hashes concurrently. */
async function signIns(platform: BenchPlatform, web: Client, people: readonly Account[]) {
  const hash = promisify<string, Buffer, number, typeof PASSWORD_COST & { maxmem: number }, Buffer>(
    scrypt,
  );
  const { N, p, r } = PASSWORD_COST;
  const cost = { ...PASSWORD_COST, maxmem: 128 * r * (N + p + 2) };
  const ways = [
    async ({ email }: Account) => {
      const { status, text } = await web.send('POST', '/api/auth/login', {
        email,
        password: PASSWORD,
      });
      if (status !== 200) throw new Error(`Sign-in: ${status} ${text}`);
    },
    async () => void (await hash(PASSWORD, randomBytes(16), 32, cost)),
  ];
  // The bare hashes are made by this process.
  const pids = [platform.pidOf('api'), process.pid];
  const rounds: [Cost[], Cost[]] = [[], []];
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [index, way] of ways.entries()) {
      const cpuBefore = await cpuOf(pids[index] ?? 0);
      const started = performance.now();
      const waiting = [...people];
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let next = waiting.pop(); next; next = waiting.pop()) await way(next);
        }),
      );
      const perSecond = (people.length / (performance.now() - started)) * 1_000;
      const cpu = (await cpuOf(pids[index] ?? 0)) - cpuBefore;
      rounds[index]?.push({ perSecond, cpuMicroseconds: (cpu / people.length) * 1e6 });
    }
  }
  return rowsOf('sign-ins', 'scrypt alone', rounds, AIM_SIGN_INS);
}

/** Measures validations of one key in one session, over the same queries in a bare handler. */
async function validations(
  platform: BenchPlatform,
  web: Client,
  database: Database,
  atEnd: (cleanup: () => void) => void,
) {
  const [person] = await accounts(database, 1);
  if (!person) throw new RangeError('No account was created');
  const { email, id: userId } = person;
  const signedIn = await web.send('POST', '/api/auth/login', { email, password: PASSWORD });
  const cookie = signedIn.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  const owner = { userId, requestId: randomUUID() };
  const asked = { name: 'benchmark', site: 'here' };
  const { key: apiKey } = await createApiKey(database, owner, asked);
  const bare = await forkUntilMessage<{ port: number }>('bare-server', [], {
    env: { ...process.env, DATABASE_URL: platform.databaseUrl },
  });
  atEnd(() => void bare.child.kill());
  const servers = [
    { url: platform.webUrl, pid: platform.pidOf('api') },
    { url: `http://127.0.0.1:${bare.message.port}`, pid: bare.child.pid ?? 0 },
  ];
  const load = (index: number, seconds: string) => {
    const { pid = 0, url = '' } = servers[index] ?? {};
    const args = [`${url}/api/keys/validate`, cookie, options.connections, seconds, 'many'];
    return measureLoad(pid, [...args, JSON.stringify({ apiKey })]);
  };
  const rounds: [Cost[], Cost[]] = [[], []];
  for (const index of servers.keys()) await load(index, options.warmup);
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const index of servers.keys()) rounds[index]?.push(await load(index, options.seconds));
  }
  return rowsOf('/api/keys/validate', 'bare Koa handler', rounds, AIM_VALIDATION);
}

type Cost = Pick<Round, 'perSecond' | 'cpuMicroseconds'>;

function rowsOf(way: string, bare: string, [ours, theirs]: [Cost[], Cost[]], aim: number) {
  const rate = (list: readonly Cost[]) => median(list.map(({ perSecond }) => perSecond));
  const cpu = (list: readonly Cost[]) => median(list.map((each) => each.cpuMicroseconds));
  return [
    [way, figure(rate(ours)), figure(cpu(ours)), figure(rate(ours) / rate(theirs)), aim],
    [`  ${bare}`, figure(rate(theirs)), figure(cpu(theirs)), '', ''],
  ];
}

/** Returns the seconds of CPU that a process has used. */
async function cpuOf(pid: number): Promise<number> {
  return (await usageOf({ measured: pid })).measured?.cpu ?? Number.NaN;
}
