import { createWeb } from '../../api/web/web.js';
import type { WebDependencies } from '../../api/web/dependencies.js';
import { databaseAlone } from './dependencies.js';
import { testDatabase, type TestDatabase } from './postgres.js';

/** The web API on a port of its own, with only a database available. */
export interface WebAlone {
  readonly url: string;
  readonly database: TestDatabase;
  readonly dependencies: WebDependencies;
  close(): Promise<void>;
}

export async function webAlone(): Promise<WebAlone> {
  const database = await testDatabase();
  const { close, dependencies } = await databaseAlone(database);
  const web = await createWeb(dependencies).listen('127.0.0.1', 0);
  return {
    url: web.url,
    database,
    dependencies,
    async close() {
      await web.close();
      await close();
      await database.close();
    },
  };
}
