import { randomUUID } from 'node:crypto';
import { createBackend } from '../../../api/backend/backend.js';
import { createWeb } from '../../../api/web/web.js';
import { makeAccount, signIn, type TestAccount } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, type Answer, type CallOptions } from '../../support/http.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

export const INTERNAL_KEY = 'internal-key-of-wallets';

/** A signed-in user. */
export interface Person extends TestAccount {
  readonly cookie: string;
}

/** Both listeners on a database, without other services. */
export interface WalletSite {
  readonly database: TestDatabase;
  readonly dependencies: Awaited<ReturnType<typeof databaseAlone>>['dependencies'];
  /** Address of the backend, for programs that call it themselves. */
  readonly backendUrl: string;
  /** All log lines of the listeners, one JSON object per line. */
  readonly logged: readonly string[];
  readonly webUrl: string;
  person(): Promise<Person>;
  /** Creates an agent that no worker runs. @returns its id. */
  agentOf(user: { readonly id: string }): Promise<string>;
  /** Calls the web listener with the session of a user, or without one. */
  web(
    user: Pick<Person, 'cookie'> | undefined,
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<Answer>;
  /** Calls the backend with the internal key, for a user or as the operator. */
  backend(
    user: { readonly id: string } | undefined,
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<Answer>;
  close(): Promise<void>;
}

export async function walletSite(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<WalletSite> {
  const database = await testDatabase();
  const { log, lines } = keptLog();
  const alone = await databaseAlone(database, log, { INTERNAL_API_KEY: INTERNAL_KEY, ...env });
  const [web, backend] = await Promise.all(
    [createWeb(alone.dependencies), createBackend(alone.dependencies)].map((listener) =>
      listener.listen('127.0.0.1', 0),
    ),
  );
  if (!web || !backend) throw new Error('both listeners must be started');
  return {
    database,
    dependencies: alone.dependencies,
    backendUrl: backend.url,
    logged: lines,
    webUrl: web.url,
    async person() {
      const account = await makeAccount(database.db);
      return { ...account, cookie: await signIn(database.db, account) };
    },
    async agentOf({ id: userId }) {
      const id = randomUUID();
      const agent = { id, userId, name: id, subdomain: id, plan: 'solo' } as const;
      await database.db
        .asUser(userId)
        .transaction((db) => db.Agent.create({ ...agent, model: 'm', aiProvider: 'openai' }));
      return id;
    },
    web: (user, method, path, options) =>
      call(web.url, method, path, {
        ...options,
        headers: { ...(user && { cookie: user.cookie }), ...options?.headers },
      }),
    backend: (user, method, path, options) =>
      call(backend.url, method, path, {
        ...options,
        headers: {
          authorization: `Bearer ${INTERNAL_KEY}`,
          ...(user && { 'x-user-id': user.id }),
          ...options?.headers,
        },
      }),
    async close() {
      await Promise.all([web.close(), backend.close()]);
      await alone.close();
      await database.close();
    },
  };
}
