import type { Logger } from 'pino';
import { MIGRATIONS } from '../database/migrations/index.js';
import { readRelease } from '../process/release.js';

/** Facts about a process that serves. */
export interface Serving {
  readonly addresses?: readonly (string | undefined)[];
  /** `DATABASE_URL` */
  readonly databaseUrl?: string;
  readonly temporal?: string;
  /** Docker hosts. */
  readonly hosts?: readonly string[];
  /** Configured AI providers. */
  readonly providers?: readonly string[];
}

/** Logs one line when a process serves, with its release and everything that it serves with; no secrets. */
export function logServing(log: Logger, { addresses, databaseUrl, ...facts }: Serving): void {
  const database = databaseUrl === undefined ? undefined : placeOf(databaseUrl);
  log.info(
    {
      release: readRelease(),
      ...facts,
      ...(addresses && { addresses: addresses.filter((each) => each !== undefined) }),
      ...(database !== undefined && { database, schema: MIGRATIONS.at(-1)?.name }),
    },
    'serves',
  );
}

/** Returns host, port and name of a database without the credentials and options of its address. */
function placeOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}
