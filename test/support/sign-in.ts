import { randomUUID } from 'node:crypto';
import { SESSION_COOKIE } from '../../api/auth/session-cookie.js';
import { createWeb } from '../../api/web/web.js';
import { DUMMY_HASH } from '../../src/accounts/accounts/password.js';
import { addSession } from '../../src/accounts/accounts/sessions.js';
import { queryRows } from '../platform/database/catalog.js';
import { Browser } from './cookies-browser.js';
import {
  startCodeHost,
  type CodeHostUser,
  type TestCodeHost,
} from '../../dev/accounts/code-host.js';
import { databaseAlone } from './dependencies.js';
import {
  startIdentityProvider,
  type Person,
  type TestIdentityProvider,
} from '../../dev/accounts/identity-provider.js';
import { keptLog } from './platform-environment.js';
import { testDatabase, type TestDatabase } from './postgres.js';

const WEB_URL = 'http://platform.test';
const PLACE = { address: '192.0.2.1', requestId: 'a-request', userAgent: undefined };

/** The web API with an identity provider and a code host, and no other services. */
export interface SignInPlatform {
  readonly database: TestDatabase;
  readonly idp: TestIdentityProvider;
  readonly codeHost: TestCodeHost;
  /** Listener addresses of two API processes. */
  readonly urls: readonly [string, string];
  readonly logged: readonly string[];
  readonly dependencies: Awaited<ReturnType<typeof databaseAlone>>['dependencies'];
  browser(): Browser;
  /** Creates an account with an unknown password, signed in in a browser of its own. */
  registered(options?: { email?: string; verified?: boolean }): Promise<Registered>;
  /** Completes the sign-in or linking at a provider. @returns the callback's response. */
  google(browser: Browser, subject: string, person: Person, begin?: string): Promise<Landing>;
  github(browser: Browser, user: CodeHostUser, begin?: string): Promise<Landing>;
  /** Runs a Google sign-in up to the provider's redirect. @returns the callback's path. */
  backFromGoogle(browser: Browser, subject: string, person: Person): Promise<string>;
  /** Returns the signed-in user, or null. */
  whoIs(browser: Browser): Promise<{ id: string; email: string; name: string } | null>;
  asOwner(sql: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export type Landing = Awaited<ReturnType<Browser['ask']>>;

export interface Registered {
  readonly id: string;
  readonly email: string;
  readonly browser: Browser;
}

/** Returns the path and query of a URL. */
export const pathOf = (url: URL): string => url.pathname + url.search;

export async function signInPlatform(
  env: Readonly<Record<string, string | undefined>> = {},
  options: { inUserinfo?: boolean } = {},
): Promise<SignInPlatform> {
  const database = await testDatabase();
  const idp = await startIdentityProvider(`${WEB_URL}/api/auth/google/callback`, options);
  const codeHost = await startCodeHost();
  const { log, lines } = keptLog();
  const alone = await databaseAlone(database, log, {
    WEB_URL,
    IDP_ISSUER_URL: idp.issuerUrl,
    IDP_CLIENT_ID: `${idp.clientId}, another-client`,
    IDP_CLIENT_SECRET: idp.clientSecret,
    CODEHOST_CLIENT_ID: codeHost.clientId,
    CODEHOST_CLIENT_SECRET: codeHost.clientSecret,
    CODEHOST_URL: codeHost.url,
    CODEHOST_API_URL: codeHost.url,
    ...env,
  });
  const { dependencies } = alone;
  const listening = await Promise.all(
    [1, 2].map(() => createWeb(dependencies).listen('127.0.0.1', 0)),
  );
  const urls = [listening[0]?.url ?? '', listening[1]?.url ?? ''] as const;
  const browser = () => new Browser(urls[0]);
  const asOwner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

  async function locationOf(from: Browser, begin: string): Promise<string> {
    if (begin.startsWith('/api/auth/')) return (await from.ask('GET', begin)).location;
    const { body, status } = await from.ask('POST', begin);
    if (status !== 200) throw new Error(`${begin} answered ${status}`);
    return body.url;
  }
  const google = async (from: Browser, subject: string, person: Person, begin: string) =>
    pathOf(await idp.consent(await locationOf(from, begin), subject, person));

  return {
    database,
    idp,
    codeHost,
    urls,
    logged: lines,
    dependencies,
    browser,
    asOwner,
    async registered({ email = `${randomUUID()}@example.com`, verified = false } = {}) {
      const theirs = browser();
      const id = randomUUID();
      const [passwordHash, emailVerifiedAt] = [DUMMY_HASH, verified ? new Date() : null];
      // Skips password hashing, which takes longer than most tests.
      const { token } = await database.db.asPlatform().transaction(async (db) => {
        await db.User.create({ id, email, name: email, passwordHash, emailVerifiedAt });
        return addSession(db, id, 'password', PLACE);
      });
      theirs.cookies.set(SESSION_COOKIE, token);
      return { id, email, browser: theirs };
    },
    google: async (from, subject, person, begin = '/api/auth/google') =>
      from.ask('GET', await google(from, subject, person, begin)),
    github: async (from, user, begin = '/api/auth/github') =>
      from.ask('GET', pathOf(codeHost.consent(await locationOf(from, begin), user))),
    backFromGoogle: (from, subject, person) => google(from, subject, person, '/api/auth/google'),
    whoIs: async (from) => (await from.ask('GET', '/api/auth/session')).body.user,
    async close() {
      await Promise.all(listening.map((each) => each.close()));
      await alone.close();
      await Promise.all([idp.close(), codeHost.close()]);
      await database.close();
    },
  };
}
